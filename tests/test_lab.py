"""Our own studies: what they measure is checked against closed forms, what they tell by hand."""
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import datasets
import nlts
from lab import ablation, agents, calibration, complexity, fast, matching, runs, speed
from lab.text import growth


def options(path, **more):
    """A command line."""
    given = {"command": "test", "out": path, "quick": True, "runs": None, "steps": None, "seed": 5,
             "data_dir": None, "jobs": 1, "datasets": ["statlog"], "dask": None, "csv": None}
    return SimpleNamespace(**given | more)


def play(agent, problem):
    """Let the agent play all of a problem."""
    for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
        arm = agent.act(context)
        agent.update(context, arm, rewards[arm])
    return agent


# Matching -----------------------------------------------------------------------------------------

def test_the_objective_is_the_one_that_is_minimized():
    problem = matching.synthetic(np.random.default_rng(0), 12, 6)
    ours, cvxpy = (matching.solve(solver, problem) for solver in ("ours", "CLARABEL"))
    best = matching.objective(problem, ours)
    assert abs(best / matching.objective(problem, cvxpy) - 1) < 1e-6
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-2, 0.1):                    # any other S is worse
        step = rng.normal(size=ours.shape)
        other = ours + size * np.linalg.norm(ours) * (step + step.T)
        assert matching.objective(problem, other) > best


def test_an_s_below_the_floor_earns_nothing():
    problem = matching.synthetic(np.random.default_rng(0), 12, 6)
    S = matching.solve("ours", problem)
    w, Q = np.linalg.eigh(S)
    cheat = (Q * np.where(w < 1.001 * w[0], w[0] - 1e-9, w)) @ Q.T
    assert matching.objective(problem, cheat) == pytest.approx(matching.objective(problem, S))


def test_only_solvers_of_semidefinite_programs_are_compared():
    found = matching.sdp_solvers()
    assert {"SCS", "CLARABEL"} <= set(found)
    assert not {"OSQP", "SCIPY"} & set(found)


def test_captured_problems_are_those_of_the_run(tmp_path):
    """In the first phase nothing has left the buffer: s^2 = |phi_old|^2 / lam, of 400 tuples."""
    found = matching.captured(options(tmp_path), "statlog", (1,))
    assert sum(one["n"] for one in found) == 400
    problem = datasets.load("statlog", 400, 5)
    network = nlts.MLP(problem.dim, problem.n_arms, seed=5)
    agent = nlts.NeuralLinearTS(network, problem.n_arms, 700, L=10 ** 6, seed=5)
    play(agent, problem)
    for one in found:
        contexts, _ = agent.buffer.rows_of(one["arm"])
        phi = nlts.last_layer_activations(network, contexts)
        np.testing.assert_allclose(one["s2"], np.sum(phi ** 2, axis=1) / 0.25)


@given(st.lists(st.integers(1, 500), min_size=1, max_size=30), st.integers(1, 6))
def test_spread_keeps_the_smallest_and_the_largest(tuples, count):
    picked = [one["n"] for one in matching.spread([{"n": n} for n in tuples], count)]
    assert picked == sorted(picked) and len(picked) <= count
    assert picked[0] == min(tuples)
    if count > 1:
        assert picked[-1] == max(tuples)


def matching_row(ours, theirs, objective=1.0):
    """A buffer on which CVXPY needs `theirs` seconds and ends at an objective."""
    return {"n": 10, "ours": {"seconds": ours, "objective": 1.0, "misfit": 0.01},
            "SCS": {"seconds": theirs, "objective": objective, "misfit": 0.01}}


@pytest.mark.parametrize("rows, fits, missed", [
    ([matching_row(1, 40)] * 3, (1.2, 2.0), []),
    ([matching_row(1, 40), matching_row(1, 40), matching_row(1, 11)], (1.2, 2.0), ["every"]),
    ([matching_row(1, 20)] * 3, (1.2, 2.0), ["median"]),
    ([matching_row(1, 40, 1 - 1e-5)] * 3, (1.2, 2.0), ["objective"]),
    ([matching_row(1, 40)] * 3, (1.6, 3.1), ["growth with n", "growth with g"]),
])
def test_goals_of_matching_are_met_or_not(rows, fits, missed):
    sizes = {"n": matching.TUPLES, "g": matching.FEATURES}
    grown = {axis: [float(x) ** p for x in sizes[axis]] for axis, p in zip("ng", fits, strict=True)}
    text = matching.goals_text(rows, grown, ["SCS"])
    lines = [line for line in text.splitlines() if "NOT met" in line]
    assert len(lines) == len(missed)
    assert all(word in line for word, line in zip(missed, lines, strict=True))


def test_growth_counts_up_to_500_and_is_printed_up_to_2000():
    """Planted: as n to 500, as n^3 from there on."""
    seconds = [n if n <= 500 else n ** 3 / 500 ** 2 for n in map(float, matching.TUPLES)]
    grown = {"n": seconds, "g": [float(g) for g in matching.FEATURES]}
    text = matching.goals_text([matching_row(1, 40)], grown, ["SCS"])
    assert re.search(r"20 to 500 .* n\^1\.00 +met", text)
    assert re.search(r"20 to 2000 +n\^1\.[2-9]", text)


def test_every_solver_is_measured_on_a_buffer():
    problem = matching.synthetic(np.random.default_rng(0), 12, 6)
    problem |= {"data": "statlog", "phase": 2, "arm": 0, "n": 12}
    row = matching.measured(problem, ["ours", "CLARABEL"])
    assert row["ours"]["misfit"] == pytest.approx(row["CLARABEL"]["misfit"], rel=0.01)
    assert 0 < row["ours"]["seconds"] < row["CLARABEL"]["seconds"]
    text = matching.real_text([row], ["ours", "CLARABEL"])
    assert "n = 12 to 12" in text and len(text.splitlines()) == 6


# Calibration --------------------------------------------------------------------------------------

def still_agent(prior, problem, memory=70):
    """An agent whose features never move."""
    network = nlts.MLP(problem.dim, problem.n_arms, seed=1)
    return nlts.NeuralLinearTS(network, problem.n_arms, memory, prior, L=50, P=0, seed=1)


def errors_of(prior, steps=200):
    """Errors of each arm after some phases, the agent, and the contexts of each arm's plays."""
    problem = datasets.load("statlog", steps, 3)
    agent = still_agent(prior, problem)
    seen = {}
    runs.play(problem, agent, lambda _, context, arm: seen.setdefault(arm, []).append(context))
    return calibration.phase_errors(agent, seen), agent, seen


def test_the_old_covariance_is_perfect_where_no_feature_moved():
    errors, _, _ = errors_of(calibration.kept_prior)
    assert len(errors) > 1
    np.testing.assert_allclose(np.concatenate(errors), 0, atol=1e-6)


def test_no_prior_is_too_uncertain_by_as_much_as_was_seen():
    errors, agent, seen = errors_of(nlts.no_prior)
    expected = []
    for i, contexts in seen.items():
        left = contexts[:len(contexts) - len(agent.buffer.rows_of(i)[1])]
        if len(left) >= calibration.LEAST:
            phi = nlts.last_layer_activations(agent.network, np.array(left))
            inverse = np.linalg.inv(0.25 * np.eye(50) + phi.T @ phi)
            full = np.einsum("ij,jk,ik->i", phi, inverse, phi)
            expected.append(np.log(np.sum(phi ** 2, 1) / 0.25 / full))
    np.testing.assert_allclose(np.concatenate(errors), np.concatenate(expected), rtol=1e-6)
    assert np.concatenate(errors).mean() > 1


def test_a_planted_error_shows_in_calibration():
    """A prior that counts twice what left is too certain by a factor of about 2."""
    def double(left, E_old, E_new, weights, lam):
        first = lam * np.eye(50)
        return [(2 * old.precision - first, w) for old, w in zip(left, weights, strict=True)]

    errors, _, _ = errors_of(double, steps=150)       # so that it compounds only a little
    assert np.concatenate(errors).mean() < -0.3


def made_up(**rewards):
    """Lines of two runs on one data set; a prior's bias is a tenth of its reward."""
    return [{"dataset": "statlog", "algorithm": name, "run": run, "reward": x + run, "config": name,
             "bias": -x / 10 - run, "error": x / 10 + run}
            for name, x in rewards.items() for run in range(2)]


REWARDS = {"both-priors": 23.0, "carried": 19.0, "kept": 15.0, "no-prior": 10.0,
           "perfect-prior": 20.0}


def test_points_are_shares_of_what_the_posterior_forgets():
    points = calibration.points_of(made_up(**REWARDS))["statlog"]
    won = {name: point["won back"] for name, point in points.items()}
    assert won == pytest.approx({"both-priors": 130, "carried": 90, "kept": 50, "no-prior": 0})
    assert all(point["standard error"] == pytest.approx(0) for point in points.values())
    assert (points["kept"]["bias"], points["kept"]["error"]) == (-2.0, 2.0)


def test_a_measured_run_is_the_run_of_the_table(tmp_path):
    o = options(tmp_path)
    task = runs.make_task(o, "table", "statlog", "carried", 850) | {"run": 1}
    line, expected = calibration.measured_run(task), runs.run_task(task)
    assert all(line[key] == expected[key] for key in ("reward", "config", "run", "dataset"))
    assert 0 < abs(line["bias"]) <= line["error"]


def test_calibration_tells_and_draws(tmp_path):
    """Made up: the paper's prior is too certain, and wins back more than all."""
    points = {d: calibration.points_of(made_up(**REWARDS))["statlog"]
              for d in ("statlog", "adult")}
    for own in points.values():
        own["carried"] |= {"error": 0.1, "bias": 0.1}
    text = calibration.calibration_text(points, 2)
    assert "Ours is nearest to full memory on 2 of 2" in text
    assert "too certain on 2" in text and "two standard errors, on 2" in text
    assert "2.80 (-2.80)" in text and "130 ± 0" in text
    figure = calibration.draw(points, 2)
    places = sorted(text.xyann[1] for text in figure.axes[0].texts)
    assert len(places) == 2 and places[1] > places[0]                # names do not overlap
    figure.savefig(tmp_path / "calibration.png")


# Ablation -----------------------------------------------------------------------------------------

def phase_inputs(seed=0, n_arms=2, n=4, g=6):
    """Arguments of a prior: posteriors of what left, old and new features, last layer, lam."""
    rng = np.random.default_rng(seed)
    left = []
    for _ in range(n_arms):
        left.append(nlts.BayesianLinearRegression(np.eye(g), np.zeros(g), 6.0, 6.0))
        left[-1].update(rng.normal(size=(20, g)), rng.normal(size=20))
    E_old = [rng.normal(size=(n, g)) for _ in range(n_arms)]
    E_new = [E + 0.1 * rng.normal(size=(n, g)) for E in E_old]
    return left, E_old, E_new, rng.normal(size=(n_arms, g)), 1.0


def test_counted_twice_adds_the_buffer_to_what_left():
    left, E_old, _, weights, lam = phase_inputs()
    kept = ablation.counted_twice(left, E_old, E_old, weights, lam, prior=calibration.kept_prior)
    for (Phi0, _), old, E in zip(kept, left, E_old, strict=True):
        np.testing.assert_allclose(Phi0, old.precision + E.T @ E)


def test_a_mixed_prior_has_the_precision_of_one_and_the_mean_of_another():
    inputs = left, E_old, E_new, weights, _ = phase_inputs()
    rows = ablation.mixed(*inputs, prior=nlts.likelihood_matching, mean=ablation.matched_rows)
    last = ablation.mixed(*inputs, prior=calibration.kept_prior, mean=nlts.mean_prior)
    for i, (Phi0, _) in enumerate(nlts.likelihood_matching(*inputs)):
        np.testing.assert_array_equal(rows[i][0], Phi0)
        np.testing.assert_allclose(E_new[i] @ rows[i][1], E_old[i] @ left[i].mu_hat)    # Eq. 5
        np.testing.assert_array_equal(last[i][0], left[i].precision)
        np.testing.assert_array_equal(last[i][1], weights[i])


def test_noise_kept_keeps_b_and_nothing_else():
    problem = datasets.load("statlog", 100, 3)
    made = [agent(nlts.MLP(problem.dim, 7, seed=1), 7, 70, nlts.no_prior, fast.train, L=100, P=20,
                  seed=1) for agent in (nlts.NeuralLinearTS, ablation.NoiseKept)]
    for agent in made:
        for context, rewards in zip(problem.contexts[:99], problem.rewards, strict=False):
            arm = agent.act(context)
            agent.update(context, arm, rewards[arm])
    before = [arm.b for arm in made[1].arms]
    plain, kept = made
    plain.learn()
    kept.learn()
    assert [arm.b for arm in kept.arms] == before != [arm.b for arm in plain.arms]
    for one, two in zip(plain.arms, kept.arms, strict=True):
        np.testing.assert_array_equal(one.mu_hat, two.mu_hat)
        assert one.a == two.a


def test_the_authors_optimizer_against_torch():
    """torch's RMSprop with the same step sizes, clipping, and mean squares that start at 1."""
    problem = datasets.load("statlog", 60, 3)
    buffer, config = nlts.ReplayBuffer(), nlts.Config(P=12, batch=16)
    for t in range(60):
        buffer.add(problem.contexts[t], t % 7, 10.0 * (t % 3))       # large: gradients are clipped
    ours, theirs = nlts.MLP(problem.dim, 7, seed=1), nlts.MLP(problem.dim, 7, seed=1)
    train = ablation.AuthorsTraining()
    rng = np.random.default_rng(0)
    train(ours, buffer, config, rng)
    train(ours, buffer, config, rng)                  # step sizes go on falling
    rng = np.random.default_rng(0)
    optimizer = torch.optim.RMSprop(theirs.parameters(), lr=0.1, alpha=0.9, eps=1e-10)
    for p in theirs.parameters():
        optimizer.state[p] = {"step": torch.tensor(0.0), "square_avg": torch.ones_like(p)}
    contexts, arms, rewards = map(torch.as_tensor, buffer.arrays())
    clipped = 0
    for step in range(24):
        rows = torch.as_tensor(rng.integers(60, size=16))
        optimizer.zero_grad()
        D = theirs(contexts[rows])[torch.arange(16), arms[rows]]
        ((D - rewards[rows]) ** 2).mean().backward()
        clipped += float(torch.nn.utils.clip_grad_norm_(theirs.parameters(), 5)) > 5
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + step / 2)
        optimizer.step()
    assert clipped > 3
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-8)


def test_networks_of_the_ablation():
    x = torch.randn(5, 100, dtype=torch.float64)
    plain, wide = nlts.MLP(100, 3, seed=2), ablation.WideMLP(100, 3, seed=2)
    torch.testing.assert_close(wide.input, 3 * plain.input)
    assert 0.29 < float(wide.input.detach().abs().max()) <= 0.3
    constant = ablation.ConstantFeature(100, 3, seed=2)
    torch.testing.assert_close(constant(x), plain(x))                # the bias is 0 at first
    constant.weights.data[:, -1] = torch.tensor([1.0, 2.0, 3.0])
    torch.testing.assert_close(constant(x) - plain(x), torch.tensor([[1.0, 2.0, 3.0]] * 5).double())


@pytest.mark.parametrize("name", [name for name in ablation.RECIPES if name not in agents.RECIPES])
def test_every_variant_plays_and_differs_from_its_method(name):
    """Over two phases; a variant that changes nothing would be a slip in its recipe."""
    problem = datasets.load("statlog", 70, 3)
    method = name.partition(",")[0]

    def precision_of(recipe, memory):
        hyper = {"L": 30, "P": 3} | {key: value for key, value in recipe.hyper.items()
                                     if key not in ("L", "P")}
        if "L" in recipe.hyper:
            hyper |= {"L": 20}
        agent = play(agents.make_agent(recipe, problem, memory, hyper, seed=1), problem)
        return [(arm.mu_hat, arm.b) for arm in agent.arms]

    memory = {"50 an arm": 3, "200 an arm": 8}.get(name.rpartition(", ")[2], 4)
    variant = precision_of(ablation.RECIPES[name], memory)
    plain = precision_of(ablation.RECIPES[method], 4)
    assert all(np.isfinite(mu).all() and b > 0 for mu, b in variant)
    assert any(mu.shape != nu.shape or not np.array_equal(mu, nu) or b != c
               for (mu, b), (nu, c) in zip(variant, plain, strict=True))


def test_buffer_sizes_are_those_of_the_names(tmp_path, monkeypatch):
    played = []

    def execute(o, name, tasks, runs):
        played.extend(tasks)
        return []

    monkeypatch.setattr(ablation, "execute", execute)
    monkeypatch.setattr(ablation, "changes_text", lambda rewards, method: "")
    ablation.ablation(options(tmp_path, quick=False, runs=2))
    sizes = {task["algorithm"]: task["memory"] for task in played}
    assert sizes["carried, 50 an arm"] == 50 and sizes["both-priors, 200 an arm"] == 200
    assert sum(size != 100 for size in sizes.values()) == 4


def test_differences_are_paired_and_starred():
    y = np.array([100.0, 200.0, 300.0])
    assert ablation.difference(y + [9, 10, 11], y) == "+10 ± 1 *"
    assert ablation.difference(y + [-9, 10, 11], y) == "+4 ± 7  "


def test_ablation_tells_every_choice():
    rng = np.random.default_rng(0)
    rewards = {"statlog": {name: 100 + rng.normal(size=3) for name in ablation.RECIPES}}
    for method, found in ablation.CHOICES.items():
        lines = ablation.changes_text(rewards, method).splitlines()
        assert len(lines) == 2 + len(found)
        assert all(line.startswith(label) for line, label in zip(lines[2:], found, strict=True))
    assert "chance alone would mark" in ablation.remarks(rewards, 3)


# Speed and complexity -----------------------------------------------------------------------------

@pytest.mark.parametrize("textbook, both, carried, missed", [
    (11.0, 1.9, 1.1, 0), (9.9, 1.9, 1.1, 1), (11.0, 2.1, 1.1, 1), (11.0, 1.9, 1.16, 1),
    (5.0, 2.1, 1.2, 3),
])
def test_goals_of_speed_are_met_or_not(textbook, both, carried, missed):
    run = {"no-prior": [1.0], "both-priors": [both], "carried": [carried]}
    text = speed.speed_text({"ours": [1.0], "textbook": [textbook]}, run, 4000)
    assert text.count("NOT met") == missed and text.count("met") == 3


def test_speed_measures_by_turns(tmp_path):
    seconds = speed.decision_seconds(0, 2)
    assert all(len(x) == 2 and min(x) > 0 for x in seconds.values())
    seconds = speed.run_seconds(options(tmp_path), 60, 2)
    assert {name: len(x) for name, x in seconds.items()} == dict.fromkeys(speed.RUNS, 2)


def test_exponents_of_known_growth():
    t = np.arange(400, 8001, 400)
    seconds = np.transpose([1e-5 * t, np.full(20, 0.05), np.full(20, 0.01)])
    size = np.transpose([t * 90.0, np.full(20, 6e4), np.full(20, 6e4)])
    solved = {"N": [1e-3 * N for N in complexity.ARMS], "n": [1e-3] * len(complexity.TUPLES),
              "CVXPY": [0.1] * len(complexity.CVXPY)}
    claims = complexity.claims_of(t, seconds, size, solved)
    exponents = [claim[4] for claim in claims]
    np.testing.assert_allclose(exponents[1:], [1, 1, 1, 0, 0, 1, 0, 0], atol=1e-6)
    assert exponents[0] == pytest.approx(1.91, abs=0.01)             # T (T + L), from T = 2,000 on
    text = complexity.complexity_text(claims)
    assert text.count("not supported") == 0 and text.count("supported") == 9
    seconds[:, 1] = 1e-5 * t                          # planted: limited memory that is not limited
    claims = complexity.claims_of(t, seconds, size, solved)
    assert "not supported" in complexity.complexity_text(claims)


def test_phases_are_timed_and_the_limited_buffer_stays_small(tmp_path):
    seconds, size = complexity.phases(options(tmp_path), 0, 750, 250)
    assert seconds.shape == (3, 3) and (seconds > 0).all()
    each = 9 * 8 + 16                                 # a context of 9 numbers, arm and reward
    assert size.tolist() == [[250 * each] * 3, [500 * each] * 3, [750 * each] + [700 * each] * 2]


@given(st.floats(-3, 3), st.floats(0.1, 10))
def test_growth_finds_the_exponent(p, factor):
    x = np.array([10.0, 20.0, 50.0, 100.0])
    assert growth(x, factor * x ** p)[0] == pytest.approx(p, abs=1e-9)
