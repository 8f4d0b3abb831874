"""Our own studies: what they measure is checked against closed forms, what they tell by hand."""
import json
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
    found = {"misfit": 0.01, "warnings": 0}
    return {"n": 10, "ours": found | {"seconds": ours, "objective": 1.0},
            "SCS": found | {"seconds": theirs, "objective": objective}}


@pytest.mark.parametrize("rows, fits, missed", [
    ([matching_row(1, 40)] * 3, (1.2, 2.0), []),
    ([matching_row(1, 40), matching_row(1, 40), matching_row(1, 11)], (1.2, 2.0), ["every"]),
    ([matching_row(1, 20)] * 3, (1.2, 2.0), ["median"]),
    ([matching_row(1, 40, 1 - 1e-5)] * 3, (1.2, 2.0), ["objective"]),
    ([matching_row(1, 40)] * 3, (1.6, 3.1), ["growth with n", "growth with g"]),
])
def test_goals_of_matching_are_met_or_not(rows, fits, missed):
    text = matching.goals_text(rows, {"n to 500": (fits[0], 0), "g": (fits[1], 0)}, ["SCS"])
    lines = [line for line in text.splitlines() if "NOT met" in line]
    assert len(lines) == len(missed)
    assert all(word in line for word, line in zip(missed, lines, strict=True))


def test_a_slow_solver_is_left_behind(tmp_path):
    rows = matching.growth_in(options(tmp_path), [(5, 4), (300, 12), (5, 5)], ["ours", "CLARABEL"])
    assert ["CLARABEL" in row for row in rows][:2] == [True, True]
    slow = rows[1]["CLARABEL"]["seconds"] >= matching.PATIENCE / 10
    assert ("CLARABEL" in rows[2]) != slow
    assert all(row["ours"]["misfit"] < 1 for row in rows)


# Calibration --------------------------------------------------------------------------------------

def still_agent(prior, problem, memory=70):
    """An agent whose features never move."""
    network = nlts.MLP(problem.dim, problem.n_arms, seed=1)
    return nlts.NeuralLinearTS(network, problem.n_arms, memory, prior, L=50, P=0, seed=1)


def errors_of(prior, steps=200):
    """phase_errors after some phases, and the agent."""
    problem = datasets.load("statlog", steps, 3)
    agent = still_agent(prior, problem)
    seen = [[] for _ in range(problem.n_arms)]
    for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
        arm = agent.act(context)
        seen[arm].append(context)
        agent.update(context, arm, rewards[arm])
    return calibration.phase_errors(agent, seen), agent, seen


def test_the_old_covariance_is_perfect_where_no_feature_moved():
    errors, _, _ = errors_of(calibration.kept_prior)
    assert errors["error"] < 1e-6 and abs(errors["bias"]) < 1e-6
    np.testing.assert_allclose(errors["quantiles"], 0, atol=1e-6)


def test_no_prior_is_too_uncertain_by_as_much_as_was_seen():
    errors, agent, seen = errors_of(nlts.no_prior)
    expected = []
    for i in range(7):
        left = seen[i][:len(seen[i]) - len(agent.buffer.rows_of(i)[1])]
        if len(left) >= calibration.LEAST:
            phi = nlts.last_layer_activations(agent.network, np.array(left))
            inverse = np.linalg.inv(0.25 * np.eye(50) + phi.T @ phi)
            full = np.einsum("ij,jk,ik->i", phi, inverse, phi)
            expected.append(np.mean(np.log(np.sum(phi ** 2, 1) / 0.25 / full)))
    assert errors["bias"] == pytest.approx(np.mean(expected)) and errors["bias"] > 1


def test_a_planted_error_shows_in_calibration():
    """A prior that counts twice what left is too certain by a factor of about 2."""
    def double(left, E_old, E_new, weights, lam):
        first = lam * np.eye(50)
        return [(2 * old.precision - first, w) for old, w in zip(left, weights, strict=True)]

    errors, _, _ = errors_of(double, steps=150)       # so that it compounds only a little
    assert errors["bias"] < -0.3


def test_points_are_shares_of_what_the_posterior_forgets():
    lines = [{"bias": -1.0, "error": 1.0}, {"bias": -2.0, "error": 2.0}]
    point = calibration.point(lines, np.array([15.0, 16.0]), np.array([10.0, 11.0]),
                              np.array([20.0, 21.0]))
    assert point["won back"] == pytest.approx(50) and point["standard error"] == pytest.approx(0)
    assert (point["bias"], point["error"], point["reward"]) == (-1.5, 1.5, 15.5)


def test_rewards_come_from_the_table_where_it_was_played(tmp_path):
    o = options(tmp_path, steps=100)
    lines = [{"dataset": "statlog", "prior": name, "run": run, "reward": 1.0 + run}
             for name in calibration.RECIPES for run in range(2)]
    own = calibration.rewards_of(o, lines, ["statlog"])
    assert own["statlog", "carried"][0].tolist() == [1.0, 2.0]
    table = []
    for name in ("both-priors", "carried", "no-prior", "perfect-prior"):
        task = runs.make_task(o, "table", "statlog", name, 100)
        other = runs.make_task(o, "table", "statlog", name, 100, lam=0.5)    # not asked for
        table += [{"config": config, "run": run, "reward": 50.0 + run, "algorithm": name}
                  for config, run in ((task["hash"], 0), (task["hash"], 3), (other["hash"], 1))]
    text = "".join(json.dumps(line) + "\n" for line in table)
    (tmp_path / "table.jsonl").write_text(text)
    rewards = calibration.rewards_of(o, lines, ["statlog"])
    assert [x.tolist() for x in rewards["statlog", "carried"]] == [[50.0, 53.0]] * 3
    assert rewards["statlog", "kept"][0].tolist() == [1.0, 2.0]              # not in the table


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=9), st.floats(0.1, 20))
def test_labels_move_up_until_they_are_apart(values, gap):
    moved = calibration.apart(values, gap)
    assert (moved >= np.array(values)).all()
    assert (np.diff(np.sort(moved)) >= gap * (1 - 1e-9)).all()
    assert (np.argsort(moved, kind="stable") == np.argsort(values, kind="stable")).all()


def test_a_measured_run_is_the_run_that_is_measured(tmp_path):
    task = runs.make_task(options(tmp_path), "table", "statlog", "carried", 850)
    mine = runs.make_task(options(tmp_path), "table", "statlog", "carried", 850,
                          module="lab.calibration")
    line = calibration.measured_run(mine | {"run": 1})
    assert line["reward"] == runs.run_task(task | {"run": 1})["reward"]
    assert [phase["t"] for phase in line["phases"]] == [800]         # at 400 nothing has left
    assert line["bias"] == line["phases"][0]["bias"]


def test_calibration_tells_and_draws(tmp_path):
    """Made up: the paper's prior is too certain, and wins there back more than all."""
    bias = {"both-priors": -2.0, "carried": 0.1, "kept": 0.7, "no-prior": 6.0}
    phases = {name: [{"t": t, "quantiles": np.linspace(x - 1, x + 1, 5).tolist()}
                     for t in (400, 800)] for name, x in bias.items()}
    lines = [{"dataset": d, "prior": name, "run": 0, "bias": x, "error": abs(x),
              "phases": phases[name]} for name, x in bias.items() for d in ("statlog", "adult")]
    rewards = {"both-priors": 130.0, "carried": 99.0, "kept": 80.0, "no-prior": 0.0}
    points = {(d, name): calibration.point([line for line in lines if line["prior"] == name],
                                           np.array([x, x]), np.zeros(2), np.array([100.0, 100.0]))
              for name, x in rewards.items() for d in ("statlog", "adult")}
    text = calibration.calibration_text(["statlog", "adult"], lines, points)
    assert "Ours is nearest to full memory on 2 of 2" in text
    assert "too certain on 2" in text and "more than the perfect prior on 2" in text
    assert "2.00 (-2.00)" in text and "130 ± 0" in text
    calibration.phases_figure(lines, ["statlog", "adult"]).savefig(tmp_path / "1.png")
    calibration.reward_figure(["statlog", "adult"], points).savefig(tmp_path / "2.png")


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


def test_carried_only_leaves_the_last_layer_out():
    left, E_old, E_new, weights, lam = phase_inputs()
    one, two = (ablation.carried_only(left, E_old, E_new, w, lam) for w in (weights, 5 * weights))
    still = ablation.carried_only(left, E_old, E_old, weights, lam)
    for i, old in enumerate(left):
        np.testing.assert_array_equal(one[i][1], two[i][1])
        np.testing.assert_allclose(still[i][1], old.mu_hat)          # nothing moved


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


def test_buffer_sizes_are_read_from_the_names():
    assert ablation.memory_of("both-priors, 50 an arm") == 50
    assert ablation.memory_of("carried, L = 800") == ablation.memory_of("carried") == 100


def test_differences_are_paired_and_starred():
    y = np.array([100.0, 200.0, 300.0])
    assert ablation.difference(y + [9, 10, 11], y) == "+10 ± 1 *"
    assert ablation.difference(y + [-9, 10, 11], y) == "+4 ± 7  "


def test_ablation_tells_and_draws(tmp_path):
    rng = np.random.default_rng(0)
    rewards = {"statlog": {name: 100 + rng.normal(size=3) for name in ablation.RECIPES}}
    rewards["statlog"]["no-prior"] -= 50
    for method in ablation.METHODS:
        lines = ablation.changes_text(rewards, method).splitlines()
        assert sum(line.startswith("- ") for line in lines) == sum(
            len(variants) for variants in ablation.CHOICES[method].values())
    assert "chance alone would mark" in ablation.remarks(rewards, 3, 1000)
    ablation.ablation_figure(rewards, 3).savefig(tmp_path / "ablation.png")


# Speed and complexity -----------------------------------------------------------------------------

def speed_numbers(textbook=11.0, both=1.9, carried=1.1):
    """Medians that a machine might have measured."""
    return {"decision": {"ours": [1.0], "textbook": [textbook], "14 arms": [1.9], "late": [1.0]},
            "mini-batch": {"plain": [3.0], "fast": [1.0]},
            "run": {"no-prior": [1.0], "both-priors": [both], "carried": [carried]}}


@pytest.mark.parametrize("numbers, missed", [
    ({}, 0), ({"textbook": 9.9}, 1), ({"both": 2.1}, 1), ({"carried": 1.16}, 1),
    ({"both": 2.1, "carried": 1.2, "textbook": 5.0}, 3),
])
def test_goals_of_speed_are_met_or_not(numbers, missed):
    text = speed.speed_text(speed_numbers(**numbers), 4000)
    assert text.count("NOT met") == missed and text.count("met") == 6


def test_speed_measures_by_turns(tmp_path):
    problem = datasets.load("statlog", 1600, 0)
    seconds = speed.decision_seconds(problem, 1, 0)
    assert all(len(x) == 1 and x[0] > 0 for x in seconds.values())
    seconds = speed.run_seconds(options(tmp_path), 60, 2)
    assert {name: len(x) for name, x in seconds.items()} == dict.fromkeys(speed.RUNS, 2)


def test_exponents_of_known_growth():
    t = np.arange(400, 8001, 400)
    seconds = np.transpose([0.01 + 1e-5 * t, np.full(20, 0.05), np.full(20, 0.01)])
    size = np.transpose([t * 90.0, np.full(20, 6e4), np.full(20, 6e4)])
    solved = {"N": [1e-3 * N for N in complexity.ARMS], "n": [1e-3] * len(complexity.TUPLES),
              "g": [1e-6 * g ** 3 for g in complexity.FEATURES]}
    claims = complexity.claims_of(t, seconds, size, solved)
    exponents = [claim[4] for claim in claims]
    np.testing.assert_allclose(exponents[2:], [1, 1, 1, 0, 1, 0, 0, 3], atol=1e-6)
    assert exponents[1] == pytest.approx(1.91, abs=0.01)             # T (T + L), from T = 2,000 on
    text = complexity.complexity_text(t, seconds, size, claims, 400, 1)
    assert text.count("not supported") == 0 and text.count("supported") == 9
    seconds[:, 1] = 1e-5 * t                          # planted: limited memory that is not limited
    claims = complexity.claims_of(t, seconds, size, solved)
    assert "not supported" in complexity.complexity_text(t, seconds, size, claims, 400, 1)


def test_phases_are_timed_and_the_limited_buffer_stays_small(tmp_path):
    seconds, size = complexity.phases(options(tmp_path), 0, 750, 250)
    assert seconds.shape == (3, 3) and (seconds > 0).all()
    each = 9 * 8 + 16                                 # a context of 9 numbers, arm and reward
    assert size.tolist() == [[250 * each] * 3, [500 * each] * 3, [750 * each] + [700 * each] * 2]


@given(st.floats(-3, 3), st.floats(0.1, 10))
def test_growth_finds_the_exponent(p, factor):
    x = np.array([10.0, 20.0, 50.0, 100.0])
    assert growth(x, factor * x ** p)[0] == pytest.approx(p, abs=1e-9)
