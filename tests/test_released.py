"""The released program's peculiarities: each switch does what it says, and no switch nothing."""
import types
from pathlib import Path

import numpy as np
import pytest
import torch

import datasets
import experiments
import nlts
from lab import options, runs
from studies import released
from studies.released import AS_RELEASED, PRIORS, SWITCHES, first_network

STEPS, DIM, N_ARMS, MEMORY = 130, 6, 3, 24
HYPER = {"L": 25, "P": 12, "batch": 16}


def played(agent, steps=STEPS):
    """The arms that an agent plays on a problem where they matter."""
    rng = np.random.default_rng(1)
    contexts = rng.normal(size=(steps, DIM))
    rewards = np.tanh(contexts[:, :N_ARMS]) + 0.1 * rng.normal(size=(steps, N_ARMS))
    chosen = []
    for context, paid in zip(contexts, rewards, strict=True):
        arm = agent.act(context)
        agent.update(context, arm, paid[arm])
        chosen.append(arm)
    return chosen


def made(method, switches=(), module=released, **more):
    """A small agent; of another module, where a bug is planted in it."""
    network = module.first_network(DIM, N_ARMS, seed=3, switches=switches)
    if method != "neural-linear":
        more |= {"memory": MEMORY, "prior": PRIORS[method]}
    return module.Agent(network, N_ARMS, switches=switches, seed=5, **HYPER | more)


@pytest.mark.parametrize("method", ["neural-linear", *PRIORS])
def test_without_a_switch_it_is_the_careful_reading(method):
    network = nlts.MLP(DIM, N_ARMS, seed=3)
    prior = {} if method == "neural-linear" else {"memory": MEMORY, "prior": PRIORS[method]}
    careful = nlts.NeuralLinearTS(network, N_ARMS, seed=5, **prior, **HYPER)
    agent = made(method)
    assert played(agent) == played(careful)
    for mine, theirs in zip(agent.posteriors, careful.arms, strict=True):
        for name in ("precision", "mu_hat", "a", "b", "n"):
            assert np.array_equal(getattr(mine, name), getattr(theirs, name)), name


ABOUT_THE_AGENT = {  # switch: the algorithms that it changes
    **{name: ["neural-linear", *PRIORS] for name in ("wide", "rmsprop", "stale", "bias",
                                                     "constant")},
    "r2": list(PRIORS), "twice": ["both-priors"], "new s²": ["both-priors"],
    "bound": ["both-priors"], "shallow": ["mu-prior", "no-prior"],
}


@pytest.mark.parametrize("switch, method", [(switch, method) for switch in ABOUT_THE_AGENT
                                            for method in ["neural-linear", *PRIORS]])
def test_a_switch_changes_what_it_is_about_and_nothing_else(switch, method):
    careful, switched = made(method), made(method, (switch,))
    played(careful, 75)                               # three phases, then what is sampled from
    played(switched, 75)

    def state(agent):
        return np.concatenate([[*arm.mu_hat, arm.b] for arm in agent.shown])

    one, other = state(careful), state(switched)
    same = len(one) == len(other) and np.allclose(one, other, rtol=1e-9)
    assert same != (method in ABOUT_THE_AGENT[switch])


def test_the_other_switches_are_of_recipes_and_problems():
    others = set(SWITCHES) - set(ABOUT_THE_AGENT)
    assert others == {"lam", "empty", "labels", "one draw"}
    assert released.recipe("no-prior", ("lam",)).hyper == {"lam": 1.0}
    assert released.recipe("neural-linear", ("lam",)).hyper == {}
    assert set(AS_RELEASED) == set(SWITCHES) - {"one draw", "constant"}


def phase(method, switches, module=released, steps=75):
    """An agent after its third phase, the arm that triggered it, and what was shown before."""
    agent, rng = made(method, switches, module), np.random.default_rng(2)
    for _ in range(steps):
        context = rng.normal(size=DIM)
        arm, shown = agent.act(context), agent.shown.copy()
        agent.update(context, arm, float(context[arm] + 0.1 * rng.normal()))
    return agent, arm, shown


def test_r2_books_what_was_forgotten_as_noise(module=released):
    agent, _, _ = phase("both-priors", ("r2",), module)
    for i, arm in enumerate(agent.posteriors):
        printed = (agent.R2[i] + arm.mu0 @ arm.Phi0 @ arm.mu0
                   - arm.mu_hat @ arm.precision @ arm.mu_hat) / 2
        assert arm.b == pytest.approx(agent.config.b0 + printed)


@pytest.mark.parametrize("switches", [(), ("twice",), ("new s²",), ("twice", "new s²")])
def test_what_is_matched(switches, module=released):
    """s² is that of the forgotten tuples under the old features, or of all, or of the new ones."""
    seen, moved = [], []

    def spy(E_new, s2, **more):
        seen.append((E_new, s2))
        return nlts.match_covariance(E_new, s2, **more)

    def train(network, buffer, config, rng):
        old = {name: p.clone() for name, p in network.state_dict().items()}
        posteriors = [(p.precision, p) for p in agent.posteriors]
        nlts.train(network, buffer, config, rng)
        moved.append((old, posteriors))

    agent = made("both-priors", switches, module, match=spy, train=train)
    played(agent, 50)
    old_network = nlts.MLP(DIM, N_ARMS)
    old_network.load_state_dict(moved[-1][0])
    contexts, arms, rewards = agent.buffer.arrays()
    for i, (E_new, s2) in enumerate(seen[-N_ARMS:]):
        rows = contexts[arms == i]
        E_old = nlts.last_layer_activations(old_network, rows)
        precision = moved[-1][1][i][0]
        if "twice" not in switches:
            precision = precision - E_old.T @ E_old
        E = E_new if "new s²" in switches else E_old
        expected = np.einsum("ij,jk,ik->i", E, np.linalg.inv(precision), E)
        assert s2 == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("method", ["neural-linear", *PRIORS])
def test_stale_arms_show_what_they_were(method, module=released):
    agent, arm, shown = phase(method, ("stale",), module)
    for i in range(N_ARMS):
        now, posterior = agent.shown[i], agent.posteriors[i]
        if i == arm:
            continue
        assert np.array_equal(now.mu_hat, shown[i].mu_hat) and now.b == shown[i].b
        expected = posterior.Phi0 if method == "both-priors" else shown[i].precision
        assert now.precision == pytest.approx(expected)
    if method == "neural-linear":
        assert agent.shown[arm] is agent.posteriors[arm]
    else:
        cov = np.linalg.inv(agent.shown[arm].precision)
        new = agent.posteriors[arm]
        assert agent.shown[arm].mu_hat == pytest.approx(cov @ (new.Phi0 @ new.mu0 + new.f))
    agent.update(np.ones(DIM), arm, 1.0)
    assert agent.shown[arm] is agent.posteriors[arm]


def test_what_is_shown_is_sampled_from(module=released):
    agent, _, _ = phase("no-prior", ("stale",), module)
    context = np.ones(DIM)
    phi = agent.features(context[None])[0]
    for best in range(N_ARMS):
        sure = 1e9 * np.eye(len(phi))
        agent.shown = [nlts.BayesianLinearRegression(sure, (i == best) * phi, 6, 6, 5)
                       for i in range(N_ARMS)]
        assert agent.act(context) == best


def test_shallow_keeps_what_had_been_learned_by_the_first_phase(module=released):
    agent = made("no-prior", ("shallow", "stale"), module)
    played(agent, 24)                                 # one step before the first phase
    before = [arm.precision for arm in agent.posteriors]
    later = made("no-prior", ("shallow", "stale"), module)
    played(later, 75)
    for Phi, arm in zip(before, later.posteriors, strict=True):
        assert arm.Phi0 == pytest.approx(Phi)
        assert np.array_equal(arm.mu0, np.zeros(len(arm.mu0)))


def test_the_output_bias_overwrites_or_belongs_to_the_constant(module=released):
    agent = made("mu-prior", ("bias",), module)
    played(agent, 60)
    bias = agent.network.output_bias.detach().numpy()
    weights = nlts.last_layer_weights(agent.network)
    assert (bias != 0).all()
    for i, arm in enumerate(agent.posteriors):
        assert arm.mu0.tolist() == [*weights[i, :-1], bias[i]]
    agent = made("mu-prior", ("constant",), module)
    played(agent, 60)
    bias = agent.network.output_bias.detach().numpy()
    weights = nlts.last_layer_weights(agent.network)
    for i, arm in enumerate(agent.posteriors):
        assert arm.mu0.tolist() == [*weights[i], bias[i]]
    D = agent.network(torch.ones(1, DIM, dtype=torch.float64)).detach().numpy()
    assert agent.features(np.ones((1, DIM))) @ agent.last_layer().T == pytest.approx(D)


def test_an_arm_without_tuples_is_certain(module=released):
    agent = made("both-priors", ("empty",), module, initial_pulls=0)
    rng = np.random.default_rng(0)
    for _ in range(25):
        agent.update(rng.normal(size=DIM), int(rng.integers(2)), rng.normal())
    assert agent.posteriors[2].Phi0 == pytest.approx(1e5 * np.eye(50))


def test_bound():
    rng = np.random.default_rng(0)
    E = rng.normal(size=(8, 20))
    least = np.linalg.eigvalsh(released.bounded_by_tiny(E, np.ones(8))).min()
    assert 1e-5 <= least <= 2e-5


# Training and first weights -----------------------------------------------------------------------

@pytest.mark.parametrize("kind", [nlts.MLP, released.Biased])
def test_gradients_are_torch_s(kind):
    rng = np.random.default_rng(0)
    network = kind(DIM, N_ARMS, seed=1)
    X, arms, r = rng.normal(size=(16, DIM)), rng.integers(N_ARMS, size=16), rng.normal(size=16)
    D = network(torch.as_tensor(X))[torch.arange(16), torch.as_tensor(arms)]
    loss = ((D - torch.as_tensor(r)) ** 2).mean()
    expected = torch.autograd.grad(loss, list(network.parameters()))
    found = released.loss_gradients([p.detach().numpy() for p in network.parameters()], X, arms, r)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine == pytest.approx(theirs.numpy())


def test_rmsprop_is_never_restarted_and_clips(module=released):
    """One tuple with a huge reward: the whole gradient is scaled to a norm of 5."""
    network, optimizer = nlts.MLP(DIM, N_ARMS, seed=1), module.RMSProp()
    config, rng, buffer = nlts.Config(P=1, batch=1), np.random.default_rng(0), nlts.ReplayBuffer()
    buffer.add(np.ones(DIM), 0, 1e6)
    squares = [np.ones(p.shape) for p in network.parameters()]
    for step in range(3):
        before = [p.detach().numpy().copy() for p in network.parameters()]
        g = released.loss_gradients(before, np.ones((1, DIM)), np.array([0]), np.array([1e6]))
        norm = np.sqrt(sum((x ** 2).sum() for x in g))
        optimizer(network, buffer, config, rng)
        for p, old, x, square in zip(network.parameters(), before, g, squares, strict=True):
            square += 0.1 * ((5 / norm * x) ** 2 - square)
            expected = old - 0.1 / (1 + step / 2) * (5 / norm * x) / np.sqrt(square)
            assert p.detach().numpy() == pytest.approx(expected)


@pytest.mark.parametrize("dim", [2, 500])
def test_wide_weights_are_within_0_3(dim):
    most = first_network(dim, N_ARMS, switches=("wide",)).input.abs().max()
    assert 0.25 < most <= 0.3


# Problems -----------------------------------------------------------------------------------------

def task_of(dataset, switches, run=0, name="no-prior", steps=30):
    o = options.Options("released", steps=steps, runs=1)
    made = released.recipe(name, switches)
    return runs.replace(runs.make_task(o, dataset, name, recipe=made), run=run)


def test_one_draw_gives_all_runs_the_same_rows():
    rows = [[released.make_problem(task_of("statlog", switches, run)).contexts for run in (0, 1)]
            for switches in ((), ("one draw",))]
    assert not np.array_equal(*rows[0]) and np.array_equal(*rows[1])
    first, second = [released.play(task_of("mushroom", ("one draw",), run)) for run in (0, 1)]
    assert first["run"] == 0 and second["run"] == 1


def test_a_stale_arm_can_be_locked_out():
    """As figures/README.md tells of the lowest Mushroom run: from the first phase on, no meal."""
    def meals(switches):
        task = task_of("mushroom", switches, 9, "neural-linear", 5000)
        problem = released.make_problem(task)
        agent = runs.recipes.make_agent(task.recipe, problem, None, task.hyper, runs.run_seed(task))
        eaten = 0
        for context, rewards in zip(problem.contexts[:1000], problem.rewards[:1000], strict=True):
            arm = agent.act(context)
            eaten += arm == 1 and agent.t >= agent.config.L
            agent.update(context, arm, rewards[arm])
        return eaten

    switches = (*AS_RELEASED, "one draw")
    assert meals(switches) == 0
    assert meals([name for name in switches if name != "stale"]) > 100


def test_scania_s_labels_are_in_the_order_of_the_file(monkeypatch):
    X = np.arange(80.0).reshape(40, 2)
    table = datasets.Table(X, (np.arange(40) % 7 == 0).astype(np.int8), np.zeros(2, int))
    monkeypatch.setattr(datasets, "table", lambda source, data_dir=None: table)
    problem = released.make_problem(task_of("scania", ("labels",)))
    assert problem.rewards.argmax(1).tolist() == table.y[:30].tolist()
    expected = datasets.standardize(X[:30].copy())
    order = np.lexsort(problem.contexts.T)
    assert problem.contexts[order] == pytest.approx(expected)
    assert not np.allclose(problem.contexts, expected)


# Planted bugs -------------------------------------------------------------------------------------

BUGS = {  # name: the line, the line with the bug, the check that must fail
    "what was forgotten is not booked": (
        "max(self.R2[i] - r @ r, 0) / 2", "0", test_r2_books_what_was_forgotten_as_noise),
    "twice in any case": (
        'old = shown if "twice" in self.switches else forgotten', "old = shown",
        lambda module: test_what_is_matched((), module)),
    "old features in any case": (
        'rows = E_new if "new s²" in self.switches else E_old', "rows = E_old",
        lambda module: test_what_is_matched(("new s²",), module)),
    "a fresh mean": (
        "mu = old.mu_hat", "mu = new.mu_hat",
        lambda module: test_stale_arms_show_what_they_were("no-prior", module)),
    "the matched covariance is not shown": (
        "precision = new.Phi0 if self.matched else old.precision", "precision = old.precision",
        lambda module: test_stale_arms_show_what_they_were("both-priors", module)),
    "sampled from what is not shown": (
        "for i, arm in enumerate(self.shown)]", "for i, arm in enumerate(self.posteriors)]",
        test_what_is_shown_is_sampled_from),
    "the last phase's precision": (
        "if self.first_learned is None:", "if True:",
        test_shallow_keeps_what_had_been_learned_by_the_first_phase),
    "the output bias is added": (
        "weights[:, -1] = self.network", "weights[:, -1] += self.network",
        test_the_output_bias_overwrites_or_belongs_to_the_constant),
    "a certain arm is an ignorant one": (
        "nothing = np.eye(len(priors[0][1])) / TINY", "nothing = np.eye(len(priors[0][1])) * TINY",
        test_an_arm_without_tuples_is_certain),
    "the step size is restarted": (
        "lr = 0.1 / (1 + self.decay * self.steps)", "lr = 0.1",
        test_rmsprop_is_never_restarted_and_clips),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_noticed(name):
    line, bug, check = BUGS[name]
    source = Path(released.__file__).read_text()
    assert source.count(line) == 1
    module = types.ModuleType("studies.released")
    exec(compile(source.replace(line, bug), name, "exec"), vars(module))
    with pytest.raises(AssertionError):
        check(module)


# The study ----------------------------------------------------------------------------------------

def test_singles_turn_one_switch_on_or_off():
    for name, variant, switches in released.singles("scania", released.MOVED):
        way, switch = variant.split(": ")
        base = set() if way == "on" else set(AS_RELEASED)
        assert set(switches) ^ base == {switch}
        assert name in released.MOVED
    assert not [v for _, v, _ in released.singles("adult", released.MOVED) if "labels" in v]


def test_the_study_at_toy_size(tmp_path, monkeypatch):
    monkeypatch.setattr(released, "DIFFERENT", ("statlog",))
    experiments.main(["released", "--quick", "--steps", "40", "--datasets", "statlog", "--out",
                      str(tmp_path), "--jobs", "1"])
    text = (tmp_path / "released.txt").read_text()
    assert "of 5 cells" in text and "as released" in text and "1943.83" in text
    assert "Statlog, linear" in text                  # the spread
    assert (tmp_path / "released.png").exists()
    before = (tmp_path / "released.jsonl").read_text()
    experiments.main(["released", "--quick", "--steps", "40", "--datasets", "statlog", "--out",
                      str(tmp_path), "--jobs", "1"])
    assert (tmp_path / "released.jsonl").read_text() == before


def test_cells_and_their_agreement_with_the_paper():
    line = {"dataset": "adult", "run": 0, "variant": "careful"}
    lines = [line | {"algorithm": "linear", "reward": 4066.0},
             line | {"algorithm": "no-prior", "reward": 3608.2 * 1.05},
             line | {"algorithm": "no-prior", "reward": 3608.2, "variant": "as released"}]
    cells = released.cells_of(lines)
    assert cells["adult", "linear"]["as released"].tolist() == [4066.0]
    rows = [row.split()[2:4] if row[:7] != "careful" else row.split()[1:3]
            for row in released.agreement_text(cells).splitlines()]
    assert rows[1:] == [["2", "2"], ["2", "2"], ["1", "1"]]
