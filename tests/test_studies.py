"""Our own studies: what they measure is checked against closed forms, what they tell by hand."""
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import datasets
import nlts
import nlts_beyond
from lab import fast, recipes, references, runs, statistics
from lab.options import Options
from studies import (
    ablation,
    calibration,
    complexity,
    exploration,
    matching,
    picture,
    released,
    speed,
)


def options(path, **more):
    """A command line."""
    given = {"out": path, "quick": True, "runs": 2, "steps": 850, "seed": 5, "jobs": 1,
             "datasets": ("statlog",)}
    return Options("test", **given | more)


def play(agent, problem):
    """Let the agent play all of a problem."""
    for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
        arm = agent.act(context)
        agent.update(context, arm, rewards[arm])
    return agent


# Matching -----------------------------------------------------------------------------------------

def test_the_objective_is_the_one_that_is_minimized():
    problem = matching.synthetic(np.random.default_rng(0), 12, 6)
    ours, cvxpy = (matching.solve(solver, problem) for solver in (matching.FAST, "CLARABEL"))
    best = matching.objective(problem, ours)
    assert abs(best / matching.objective(problem, cvxpy) - 1) < 1e-6
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-2, 0.1):                    # any other S is worse
        step = rng.normal(size=ours.shape)
        other = ours + size * np.linalg.norm(ours) * (step + step.T)
        assert matching.objective(problem, other) > best


def test_an_s_below_the_floor_earns_nothing():
    problem = matching.synthetic(np.random.default_rng(0), 12, 6)
    S = matching.solve("nlts.py", problem)
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
    own = {"seconds": ours, "objective": 1.0, "misfit": 0.01}
    return {"n": 10, "lab/fast.py": own, "SCS": own | {"seconds": theirs, "objective": objective}}


def test_solvers_are_told_by_their_ratio_and_growth():
    """Planted: time as n to 500, as n^3 from there on; as g^2."""
    seconds = [n if n <= 500 else n ** 3 / 500 ** 2 for n in map(float, matching.TUPLES)]
    grown = {"n": seconds, "g": [float(g) ** 2 for g in matching.FEATURES]}
    rows = [matching_row(1, 40), matching_row(1, 60, 1 + 1e-5), matching_row(1, 11)]
    told = matching.tell({"real": rows, "solvers": ["lab/fast.py", "SCS"], "ridge": 1e-3,
                          "floor": 1e-2, "synthetic": grown}).splitlines()
    scs = next(line for line in told if line.startswith("SCS")).split()
    assert scs[1:6] == ["40000.0", "40.0", "11.0", "0e+00", "1e-05"]
    growth = {line.split("  ")[0]: line.split()[-3] for line in told if "^" in line}
    assert growth["n from 20 to 500"] == "n^1.00" and growth["g from 10 to 200"] == "g^2.00"
    assert 1.2 < float(growth["n from 20 to 5000"].partition("^")[2]) < 2


def test_every_solver_is_measured_on_a_buffer():
    problem = matching.synthetic(np.random.default_rng(0), 12, 6)
    problem |= {"data": "statlog", "phase": 2, "arm": 0, "n": 12}
    row = matching.measured(problem, [*matching.OURS, "CLARABEL"])
    for name in matching.OURS:
        assert row[name]["misfit"] == pytest.approx(row["CLARABEL"]["misfit"], rel=0.01)
        assert row[name]["seconds"] > 0


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
        gone = contexts[:len(contexts) - len(agent.buffer.rows_of(i)[1])]
        if len(gone) >= calibration.LEAST:
            phi = nlts.last_layer_activations(agent.network, np.array(gone))
            inverse = np.linalg.inv(0.25 * np.eye(50) + phi.T @ phi)
            full = np.einsum("ij,jk,ik->i", phi, inverse, phi)
            expected.append(np.log(np.sum(phi ** 2, 1) / 0.25 / full))
    np.testing.assert_allclose(np.concatenate(errors), np.concatenate(expected), rtol=1e-6)
    assert np.concatenate(errors).mean() > 1


def test_a_planted_error_shows_in_calibration():
    """A prior that counts twice what left is too certain by a factor of about 2."""
    def double(forgotten, E_old, E_new, weights, lam):
        first = lam * np.eye(50)
        return [(2 * old.precision - first, w) for old, w in zip(forgotten, weights, strict=True)]

    errors, _, _ = errors_of(double, steps=150)       # so that it compounds only a little
    assert np.concatenate(errors).mean() < -0.3


def made_up(**rewards):
    """Lines of two runs on one data set; a prior's bias is a tenth of its reward."""
    return [{"dataset": "statlog", "algorithm": name, "run": run, "reward": x + run, "config": name,
             "bias": -x / 10 - run, "error": x / 10 + run, "explored": 0.1}
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
    o = options(tmp_path, steps=850)
    task = replace(runs.make_task(o, "statlog", "carried", experiment="table"), run=1)
    line, expected = calibration.measured_run(task), runs.run_task(task)
    assert all(line[key] == expected[key] for key in expected if key != "seconds")
    assert 0 < abs(line["bias"]) <= line["error"]


def test_calibration_tells_and_draws(tmp_path):
    """Made up: the paper's prior is the most certain, and wins back more than all."""
    lines = [line | {"dataset": d} for d in ("statlog", "adult") for line in made_up(**REWARDS)]
    told = calibration.tell(lines)
    assert "nearest to full memory on 0 of 2" in told and "than full memory on 2;" in told
    assert "2.80 (-2.80)" in told and "130 ± 0" in told
    figure = calibration.draw(lines)["calibration"]
    left, right = figure.axes
    assert [text.get_text() for text in left.get_yticklabels()] == ["Statlog", "Adult"]
    drawn = sorted(line.get_xdata()[0] for line in right.lines if len(line.get_xdata()) == 2
                   and line.get_marker() in "s^Dv")
    assert drawn == pytest.approx([0, 50, 90, 130]) and not right.texts
    figure.savefig(tmp_path / "calibration.png")


def test_what_does_not_fit_into_the_picture_is_told_at_its_edge():
    (right,) = calibration.draw(made_up(**REWARDS | {"carried": 60.0, "kept": -20.0}))[
        "calibration"].axes[1:]
    assert [text.get_text() for text in right.texts] == ["500 ± 0 →", "← -300 ± 0"]


# Ablation -----------------------------------------------------------------------------------------

def phase_inputs(seed=0, n_arms=2, n=4, g=6):
    """Arguments of a prior: posteriors of what left, old and new features, last layer, lam."""
    rng = np.random.default_rng(seed)
    forgotten = []
    for _ in range(n_arms):
        forgotten.append(nlts.BayesianLinearRegression(np.eye(g), np.zeros(g), 6.0, 6.0))
        forgotten[-1].update(rng.normal(size=(20, g)), rng.normal(size=20))
    E_old = [rng.normal(size=(n, g)) for _ in range(n_arms)]
    E_new = [E + 0.1 * rng.normal(size=(n, g)) for E in E_old]
    return forgotten, E_old, E_new, rng.normal(size=(n_arms, g)), 1.0


def test_counted_twice_adds_the_buffer_to_what_left():
    forgotten, E_old, _, weights, lam = phase_inputs()
    kept = ablation.counted_twice(forgotten, E_old, E_old, weights, lam,
                                  prior=calibration.kept_prior)
    for (Phi0, _), old, E in zip(kept, forgotten, E_old, strict=True):
        np.testing.assert_allclose(Phi0, old.precision + E.T @ E)


def test_a_mixed_prior_has_the_precision_of_one_and_the_mean_of_another():
    inputs = forgotten, E_old, E_new, weights, _ = phase_inputs()
    rows = ablation.mixed(*inputs, prior=nlts.likelihood_matching, mean=ablation.matched_rows)
    last = ablation.mixed(*inputs, prior=calibration.kept_prior, mean=nlts.mean_prior)
    for i, (Phi0, _) in enumerate(nlts.likelihood_matching(*inputs)):
        np.testing.assert_array_equal(rows[i][0], Phi0)
        np.testing.assert_allclose(E_new[i] @ rows[i][1], E_old[i] @ forgotten[i].mu_hat)    # Eq. 5
        np.testing.assert_array_equal(last[i][0], forgotten[i].precision)
        np.testing.assert_array_equal(last[i][1], weights[i])


def test_noise_not_recomputed_is_the_sum_of_what_each_tuple_adds():
    """Played by hand: all that a tuple adds to its arm's b counts, except in the step of a phase;
    what the phase itself changes does not."""
    problem, kept = datasets.load("statlog", 130, 3), ablation.NoiseKept()
    agent = nlts.NeuralLinearTS(nlts.MLP(problem.dim, 7, seed=1), 7, 70, nlts.no_prior, fast.train,
                                noise=kept, L=50, P=20, seed=1, initial_pulls=0)
    b = np.full(7, 6.0)
    recomputed = False
    for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
        arm = agent.act(context)
        np.testing.assert_allclose(kept.b, b)
        before = [one.b for one in agent.arms]
        agent.update(context, arm, rewards[arm])
        if agent.t % 50:
            b[arm] += agent.arms[arm].b - before[arm]
        else:
            recomputed |= not np.allclose([one.b for one in agent.arms], before)
    assert recomputed and not np.allclose(kept.b, [one.b for one in agent.arms])


def test_the_authors_optimizer_against_torch():
    """torch's RMSprop with the same step sizes, clipping, and mean squares that start at 1."""
    problem = datasets.load("statlog", 60, 3)
    buffer, config = nlts.ReplayBuffer(), nlts.Config(P=12, batch=16)
    for t in range(60):
        buffer.add(problem.contexts[t], t % 7, 10.0 * (t % 3))       # large: gradients are clipped
    ours, theirs = nlts.MLP(problem.dim, 7, seed=1), nlts.MLP(problem.dim, 7, seed=1)
    train = released.RMSProp()
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
    plain, wide = nlts.MLP(100, 3, seed=2), ablation.WIDE(100, 3, seed=2)
    torch.testing.assert_close(wide.input, 3 * plain.input)
    assert 0.29 < float(wide.input.detach().abs().max()) <= 0.3
    biased = ablation.UniformBiases(100, 3, seed=2)
    torch.testing.assert_close(biased.input, plain.input)
    assert 0.09 < float(biased.bias.detach().abs().max()) <= 0.1
    constant = ablation.ConstantFeature(100, 3, seed=2)
    torch.testing.assert_close(constant(x), plain(x))                # the bias is 0 at first
    constant.weights.data[:, -1] = torch.tensor([1.0, 2.0, 3.0])
    torch.testing.assert_close(constant(x) - plain(x), torch.tensor([[1.0, 2.0, 3.0]] * 5).double())


VARIANTS = [(method, label) for method, found in ablation.CHOICES.items() for label in found
            if method != "linear"]


@pytest.mark.parametrize("method, label", VARIANTS)
def test_every_variant_plays_and_differs_from_its_method(method, label):
    """Over two phases; a variant that changes nothing would be a slip in its recipe."""
    problem, small = datasets.load("statlog", 70, 3), {"L": 30, "P": 3}
    changes = ablation.CHOICES[method][label]

    def posteriors(recipe, memory, hyper):
        return play(recipes.make_agent(recipe, problem, memory, hyper, seed=1), problem)

    hyper = small | changes.get("hyper", {})
    if "L" in hyper:
        hyper |= {"L": {50: 10, 100: 15, 400: 30, 800: 35}.get(hyper["L"], 30), "P": 3}
    memory = changes.get("memory", 100) // 25
    variant = posteriors(changes.get("recipe", recipes.RECIPES[method]), memory, hyper)
    plain = posteriors(recipes.RECIPES[method], 4, small)
    assert all(np.isfinite(arm.mu_hat).all() and arm.b > 0 for arm in variant.arms)
    noise = [agent.noise(agent.arms, agent.config, np.random.default_rng(0))
             for agent in (variant, plain)]
    assert not np.array_equal(*noise) or any(
        one.mu_hat.shape != two.mu_hat.shape or not np.array_equal(one.mu_hat, two.mu_hat)
        for one, two in zip(variant.arms, plain.arms, strict=True))


def test_a_linear_bandit_without_a_constant_feature(tmp_path):
    changes = ablation.CHOICES["linear"]["no constant feature"]
    o = options(tmp_path, steps=30)
    plain, without = (runs.make_run(runs.make_task(o, "statlog", "linear", **more))
                      for more in ({}, changes))
    assert plain[1].dim == 10 and without[1].dim == 9
    np.testing.assert_array_equal(plain[0].contexts[:, :-1], without[0].contexts)


def ablation_lines(gain):
    """Made up: four runs of each variant on two data sets, the first of which gains so much."""
    rng, lines = np.random.default_rng(0), []
    for d in ("statlog", "adult"):
        level = 1000 + 100 * rng.normal(size=4)
        for method, found in ablation.CHOICES.items():
            for label in ("", *found):
                reward = level + 0.1 * rng.normal(size=4) + gain * (label == "λ = 1")
                lines += [{"dataset": d, "algorithm": method, "variant": label, "run": k,
                           "reward": reward[k]} for k in range(4)]
    return lines


def test_ablation_stars_what_differs_and_tells_every_choice():
    told = ablation.tell(ablation_lines(50.0))
    for label in {label for found in ablation.CHOICES.values() for label in found}:
        assert f"\n{label} " in told
    starred = [line for line in told.splitlines() if line.count(" *") == 2]
    assert len(starred) == 2 and all(line.startswith("λ = 1 ") for line in starred)
    assert ablation.tell(ablation_lines(0.0)).count(" *\n") == 0


# Exploration --------------------------------------------------------------------------------------

def test_exploration_tells_what_noise_and_prior_are_worth():
    """Made up: pooled noise adds 100; ours is 10 above full memory on both data sets."""
    rng, lines = np.random.default_rng(0), []
    for d in ("statlog", "adult"):
        for noise in (*exploration.NOISE, exploration.WORTH):
            for name in exploration.EXPLORED:
                reward = 1000 + 100 * noise.startswith("pooled") + 10 * (name == "carried")
                lines += [{"dataset": d, "algorithm": name, "variant": noise, "run": k,
                           "explored": 0.1, "reward": reward + 0.1 * rng.normal()}
                          for k in range(5)]
    told = exploration.tell(lines)
    assert "carried against neural-linear: more on 2 of 2 data sets, less on 0" in told
    assert told.count("+100 ± 0") == 8                # pooled minus b⁰ = 6
    figure = exploration.draw(lines)["exploration"]
    assert [panel.get_title() for panel in figure.axes] == ["Statlog", "Adult"]


def meals(name, initial_pulls):
    """What eating paid in the first 1000 steps of the worst Mushroom run of `exploration`."""
    o = Options("exploration", steps=5000)
    task = runs.make_task(o, "mushroom", name, recipe=exploration.pooled(name),
                          hyper=recipes.RECOMMENDED | {"initial_pulls": initial_pulls}, run=9)
    problem, agent = runs.make_run(task)
    paid = []
    for context, rewards in zip(problem.contexts[:1000], problem.rewards[:1000], strict=True):
        arm = agent.act(context)
        agent.update(context, arm, rewards[arm])
        if arm == 1:
            paid.append(rewards[arm])
    return paid


@pytest.mark.parametrize("name", exploration.EXPLORED)
def test_the_mushroom_run_that_never_eats_again(name):
    """As figures/README.md tells it, whatever the memory; with a fourth meal it goes on eating."""
    assert meals(name, 3) == [-35, -35, -35]
    assert len(meals(name, 4)) > 100


def test_recipes_of_exploration_pool_the_noise_and_change_nothing_else():
    for name in exploration.EXPLORED:
        plain, pooled = recipes.RECIPES[name], exploration.pooled(name)
        assert pooled.arguments == plain.arguments | {"noise": nlts_beyond.pooled_noise}
        assert replace(pooled, arguments=plain.arguments) == plain


# Speed and complexity -----------------------------------------------------------------------------

def test_speed_tells_ratios_of_medians():
    data = {"decision": {"ours": [1.0, 2.0, 90.0], "textbook": [24.0]},
            "linear": {"50": {"ours": [0.5], "factorized": [1.5]}}, "options": {"steps": 4000},
            "phase": {"9": {"nlts.train": [0.4], "lab/fast.py": [0.1]}},
            "run": {"no-prior": [1.0], "both-priors": [1.9], "carried": [1.1]}}
    rows = speed.tell(data).splitlines()[1:6]
    assert [row.split()[-1] for row in rows] == ["12.00", "3.00", "0.25", "1.90", "1.10"]


def test_speed_measures_by_turns(tmp_path):
    seconds = speed.decision_seconds(0, 2)
    assert all(len(x) == 2 and min(x) > 0 for x in seconds.values())
    seconds = speed.run_seconds(options(tmp_path, steps=60))
    assert {name: len(x) for name, x in seconds.items()} == dict.fromkeys(speed.RUNS, 2)
    assert set(speed.linear_seconds(5, 0, 1)) == {"ours", "factorized"}


def test_the_factorizing_agent_knows_what_linear_ts_knows():
    """The same tuples give the same posterior; and its samples have that posterior's covariance:
    4,000 draws of phi'mu, an error of the standard deviation of about 1 %."""
    rng = np.random.default_rng(0)
    ours = nlts.LinearTS(4, 2, initial_pulls=0)
    plain = references.Refactorized(4, 2)
    for t in range(60):
        context, reward = rng.normal(size=4), rng.normal()
        ours.update(context, t % 2, reward)
        plain.update(context, t % 2, reward)
    for i, arm in enumerate(ours.arms):
        np.testing.assert_allclose(plain.mu[i], arm.mu_hat)
        np.testing.assert_allclose(plain.chol[i] @ plain.chol[i].T, arm.precision)
        assert (plain.a[i], plain.b[i]) == pytest.approx((arm.a, arm.b))
    context = rng.normal(size=4)
    plays = [np.mean([agent.act(context) for _ in range(4000)]) for agent in (ours, plain)]
    assert abs(plays[0] - plays[1]) < 4 * np.sqrt(2 * 0.25 / 4000)


def complexity_data(T=8000, L=400):
    """Phases of full memory take time in proportion to T, of limited memory always the same."""
    t = np.arange(L, T + 1, L)
    n = len(t)
    seconds = np.transpose([1e-5 * t, np.full(n, 0.05), np.full(n, 0.01)])
    size = np.transpose([t * 90.0, np.full(n, 6e4), np.full(n, 6e4)])
    arms, tuples = complexity.ARMS, complexity.TUPLES
    solved = {"N": [arms, [1e-3 * N for N in arms]], "n": [tuples, [1e-3] * len(tuples)],
              "CVXPY": [tuples[3:], [0.1] * len(tuples[3:])]}
    return {"T": t, "L": L, "seconds of a phase": seconds, "bytes of the buffer": size,
            "Eq. 6, s": solved, "options": {"runs": 1}}


def test_exponents_of_known_growth():
    data = complexity_data()
    exponents = [claim[4] for claim in complexity.claims_of(data)]
    np.testing.assert_allclose(exponents, [1, 1, 0, 0, 0, 0, 1, 0, 0], atol=1e-6)
    assert complexity.tell(data).count("as claimed\n") + 1 >= 9
    data["seconds of a phase"][:, 1] = 1e-5 * data["T"]     # planted: memory that is not limited
    row = next(line for line in complexity.tell(data).splitlines() if line.startswith("both"))
    assert row.endswith("more")
    data["seconds of a phase"][:, 0] = 1.0                  # and full memory that is not slower
    row = next(line for line in complexity.tell(data).splitlines() if line.startswith("full"))
    assert row.endswith("less")


def test_phases_are_timed_and_the_limited_buffer_stays_small(tmp_path):
    seconds, size = complexity.phases(options(tmp_path), 0, 750, 250)
    assert seconds.shape == (3, 3) and (seconds > 0).all()
    each = 9 * 8 + 16                                 # a context of 9 numbers, arm and reward
    assert size.tolist() == [[250 * each] * 3, [500 * each] * 3, [750 * each] + [700 * each] * 2]


# Picture ------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def pictured():
    return {"options": {"seed": 0}, **picture.measured(Options("picture", runs=1))}


def test_buffer_and_forgotten_tuples_lie_together_or_apart(pictured):
    for name, moved in picture.ROWS.items():
        contexts = np.array(pictured["shown"][name]["contexts"])
        forgotten, kept = contexts[:-picture.KEPT].mean(0), contexts[-picture.KEPT:].mean(0)
        distance = np.linalg.norm(forgotten - kept)
        assert distance > 1 if moved else distance < 0.3


def test_certainty_is_that_of_the_maps(pictured):
    """Where tuples were forgotten, no prior is less certain than full memory, by what is told."""
    shown = pictured["shown"]["one distribution"]
    at = picture.places(np.array(shown["contexts"]))["forgotten"]
    none, full = (np.array(shown["maps"][panel])[at] for panel in ("no prior", "full memory"))
    told = pictured["certainty"]["one distribution"][0]["no prior"]["forgotten"]
    assert told == pytest.approx(np.exp(np.log(none / full).mean()), rel=0.05) and told > 1.5


def test_claims_of_the_picture_are_counted(pictured):
    told = picture.tell(pictured)
    assert told.count("1 of 1 seeds") + told.count("0 of 1 seeds") == 2 * len(picture.CLAIMS)
    for name in pictured["certainty"]:                # planted: everybody is twice as uncertain
        wrong = {panel: dict.fromkeys(("forgotten", "elsewhere"), 2.0) for panel in picture.PRIORS}
        pictured["certainty"][name].append(wrong)
    told = " ".join(picture.tell(pictured).split())
    assert "overconfident away from the data 1 of 2 seeds" in told
    assert "within a factor of 1.5 away from the data 1 of 2 seeds" in told


def test_all_panels_share_one_logarithmic_scale(pictured):
    figure = picture.draw(pictured)["picture"]
    maps = [axis.collections[0] for axis in figure.axes[:10]]
    assert len({(bands.norm.vmin, bands.norm.vmax) for bands in maps}) == 1


@given(st.floats(-3, 3), st.floats(0.1, 10))
def test_growth_finds_the_exponent(p, factor):
    x = np.array([10.0, 20.0, 50.0, 100.0])
    assert statistics.growth(x, factor * x ** p)[0] == pytest.approx(p, abs=1e-9)
