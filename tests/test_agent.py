"""Tests of Algorithm 2 and of what agents have in common.

The oracle of a learning phase keeps all tuples on the side, in the order of time. An arm's tuples
leave the buffer oldest first, so what left is the first part of its list.
"""
import copy
import functools

import numpy as np
import pytest
import torch
from hypothesis import given, settings

import nlts_beyond as beyond_module
from test_nlts import (
    LinearFeatures,
    assert_posterior,
    close,
    invertible_map,
    printed,
    seeds,
)

PRIORS = ["likelihood_matching", "mean_prior", "no_prior", "carried_prior"]


def prior_of(nlts, name):
    return getattr(beyond_module if name == "carried_prior" else nlts, name)


def small_agent(nlts, seed=0, memory=18, prior="likelihood_matching", **options):
    options = {"L": 40, "P": 30, "batch": 8, "lr": 1e-2} | options
    prior = prior_of(nlts, prior) if isinstance(prior, str) else prior
    network = options.pop("network", None) or nlts.MLP(4, 3, 6, seed=seed)
    return nlts.NeuralLinearTS(network, 3, memory, prior, seed=seed, **options)


def step_of(agent, seed=0, dim=4):
    """A nonlinear problem: the context at the agent's time, and the rewards of three arms."""
    rng = np.random.default_rng([seed, agent.t])
    context = rng.normal(size=dim)
    return context, np.abs(context[:3]) + 0.1 * rng.normal(size=3)


def advance(agent, steps, seed=0):
    """Play; returns the arms. Goes on where the agent is."""
    played = []
    for _ in range(steps):
        context, rewards = step_of(agent, seed)
        played.append(agent.act(context))
        agent.update(context, played[-1], rewards[played[-1]])
    return played


class Watched:
    """A prior that keeps what it was given and what it returned."""

    def __init__(self, prior):
        self.prior, self.calls = prior, []

    def __call__(self, forgotten, E_old, E_new, weights, lam):
        priors = self.prior(forgotten, E_old, E_new, weights, lam)
        self.calls.append(copy.deepcopy((forgotten, E_old, E_new, weights, lam, priors)))
        return priors


class Archive:
    """All tuples of each arm: the oracle with full memory."""

    def __init__(self, agent):
        self.agent = agent
        self.tuples = [[] for _ in agent.arms]

    def advance(self, steps, seed=0, scale=1):
        for _ in range(steps):
            context, rewards = step_of(self.agent, seed)
            arm = self.agent.act(context)
            self.tuples[arm].append((context, scale * rewards[arm]))
            self.agent.update(context, arm, scale * rewards[arm])

    def rows(self, nlts, arm):
        """Features under the network as it is, and rewards, of all tuples of an arm."""
        contexts = np.array([context for context, _ in self.tuples[arm]]).reshape(-1, 4)
        phi = nlts.last_layer_activations(self.agent.network, contexts)
        return phi, np.array([reward for _, reward in self.tuples[arm]])

    def number_left(self, arm):
        return len(self.tuples[arm]) - len(self.agent.buffer.rows_of(arm)[1])


# Learning phases ----------------------------------------------------------------------------------

@given(seed=seeds)
@settings(max_examples=5)
def test_without_retraining_it_is_linear_ts_on_the_features(nlts, seed):
    agent = small_agent(nlts, seed=seed, memory=None, L=10 ** 6)
    linear = nlts.LinearTS(6, 3, seed=seed)
    for _ in range(60):
        context, rewards = step_of(agent, seed)
        phi = agent.phi(context)
        arm = agent.act(context)
        assert arm == linear.act(phi)
        agent.update(context, arm, rewards[arm])
        linear.update(phi, arm, rewards[arm])


def linear_moves(seed, g):
    """A `train` that replaces the map A of LinearFeatures by another one, and last layers, too."""
    rng = np.random.default_rng(seed)

    def train(network, buffer, config, _):
        network.A.data = torch.as_tensor(invertible_map(rng, g))
        network.last.weight.data = torch.as_tensor(rng.normal(size=network.last.weight.shape))
    return train


def moving_agent(nlts, prior, move):
    """An agent whose features are trained, stand still, or are replaced by linear maps of b."""
    if move == "linear":
        network = LinearFeatures(np.eye(4), 3)
        return small_agent(nlts, prior=prior, network=network, train=linear_moves(0, 4))
    return small_agent(nlts, prior=prior, P={"trained": 30, "still": 0}[move])


@pytest.mark.parametrize("move", ["trained", "still", "linear"])
@pytest.mark.parametrize("prior", PRIORS)
def test_what_is_left_is_the_posterior_of_exactly_what_left_the_buffer(nlts, prior, move):
    """Over four phases: nothing counts twice, nothing is lost, in a and b neither."""
    watched = Watched(prior_of(nlts, prior))
    agent = moving_agent(nlts, watched, move)
    archive, g = Archive(agent), len(agent.arms[0].mu0)
    priors = [(agent.config.lam * np.eye(g), np.zeros(g), 6.0, 6.0)] * 3
    gone = [0, 0, 0]
    for phase in range(4):
        archive.advance(39)
        old = copy.deepcopy(agent.network)
        archive.advance(1)
        assert len(watched.calls) == phase + 1
        forgotten, E_old, E_new, weights, _, new_priors = watched.calls[-1]
        close(weights, nlts.last_layer_weights(agent.network))
        for i in range(3):
            n = archive.number_left(i)
            contexts, r = (np.array(x) for x in zip(*archive.tuples[i], strict=True))
            phi = nlts.last_layer_activations(old, contexts)
            expected = printed(phi[gone[i]:n], r[gone[i]:n], *priors[i])
            assert_posterior(forgotten[i], expected, n, rtol=1e-6)
            close(E_old[i], phi[n:])
            close(E_new[i], nlts.last_layer_activations(agent.network, contexts[n:]))
            assert np.allclose(E_new[i], E_old[i]) == (move == "still")
            priors[i] = *new_priors[i], forgotten[i].a, forgotten[i].b
            expected = printed(E_new[i], r[n:], *priors[i])      # the buffer is put back
            assert_posterior(agent.arms[i], expected, len(r), rtol=1e-6)
            close(agent.arms[i].Phi, E_new[i].T @ E_new[i])
            close(agent.arms[i].f, E_new[i].T @ r[n:], scale=1 + np.abs(agent.arms[i].f).max())
            gone[i] = n
        assert max(gone) > 0


@pytest.mark.parametrize("prior", PRIORS)
def test_a_counts_the_plays_of_its_arm_always(nlts, prior):
    agent, plays = small_agent(nlts, prior=prior, L=15, P=2), np.zeros(3)
    for _ in range(100):
        plays[advance(agent, 1)[0]] += 1
        assert [arm.a for arm in agent.arms] == list(6 + plays / 2)
        assert [arm.n for arm in agent.arms] == list(plays)


@pytest.mark.parametrize("options", [
    {"memory": None},
    {"memory": 1000, "prior": "no_prior"},
    {"memory": 1000, "prior": lambda forgotten, *rest: [(arm.Phi0, arm.mu0) for arm in forgotten]},
])
def test_with_an_unlimited_buffer_a_phase_is_a_regression_on_all_data(nlts, options):
    """Phi, f, mu_hat, a and b under the new features, after three phases."""
    agent = small_agent(nlts, **options)
    archive, lam = Archive(agent), agent.config.lam
    archive.advance(3 * 40 + 7)
    for i, arm in enumerate(agent.arms):
        phi, r = archive.rows(nlts, i)
        assert_posterior(arm, printed(phi, r, lam * np.eye(6), np.zeros(6)), len(r), rtol=1e-7)
        close(arm.Phi, phi.T @ phi)
        close(arm.f, phi.T @ r)
        assert pytest.approx(r @ r) == arm.R2


def test_better_features_lower_the_noise_that_is_believed(nlts):
    """b leaves and comes back with the buffer: residuals of poor, early features do not stay."""
    agent = small_agent(nlts, memory=None, L=10 ** 6, P=600, b0=0.01)
    advance(agent, 200)
    before = [arm.b for arm in agent.arms]
    agent.learn()
    assert sum(arm.b for arm in agent.arms) < 0.7 * sum(before)


def analytical_prior(nlts):
    def prior(forgotten, E_old, E_new, weights, lam):
        return [nlts.invertible_prior(E_old[i], E_new[i], old.mu_hat, old.precision)
                for i, old in enumerate(forgotten)]
    return prior


@given(seed=seeds)
@settings(max_examples=10)
def test_appendix_c_recovers_the_full_data_regression(nlts, seed):
    """Mean, precision, a, b after three phases; the first prior comes along as lam A A'."""
    rng, g = np.random.default_rng(seed), 3
    agent = nlts.NeuralLinearTS(LinearFeatures(np.eye(g), 2), 2, 20, analytical_prior(nlts),
                                linear_moves(seed, g), L=50, seed=seed)
    contexts, arms = rng.normal(size=(170, g)), rng.integers(2, size=170)
    rewards = contexts @ [1, 2, 3] + rng.normal(size=170)
    for context, arm, reward in zip(contexts, arms, rewards, strict=True):
        agent.update(context, arm, reward)
    A = agent.network.A.detach().numpy()
    assert not np.allclose(A, np.eye(g))
    for i, arm in enumerate(agent.arms):
        E, r = contexts[arms == i] @ A.T, rewards[arms == i]
        assert_posterior(arm, printed(E, r, 0.25 * A @ A.T, np.zeros(g)), len(r), rtol=1e-6)


# Priors -------------------------------------------------------------------------------------------

def test_the_papers_prior_is_eq_6_and_the_last_layer(nlts):
    """Specified once more, with inverses: s2 is that of what left, by the whole precision."""
    watched = Watched(nlts.likelihood_matching)
    agent = small_agent(nlts, prior=watched)
    advance(agent, 80)
    forgotten, E_old, E_new, _, _, priors = watched.calls[-1]
    for i, (Phi0, mu0) in enumerate(priors):
        s2 = np.diag(E_old[i] @ np.linalg.inv(forgotten[i].precision) @ E_old[i].T)
        close(np.linalg.inv(Phi0), nlts.match_covariance(E_new[i], s2), rtol=1e-6)
        close(mu0, agent.network.weights[i].detach().numpy())
        close(agent.arms[i].Phi0, Phi0)
        close(agent.arms[i].mu0, mu0)


@given(seed=seeds)
@settings(max_examples=20)
def test_the_papers_prior_reproduces_s2_where_it_can(nlts, seed):
    """Features moved by an invertible map, so that an S with these s2 exists, S_true. The objective
    at the solution is not above that at S_true: a bound on the misfit that falls with the ridge."""
    rng, g = np.random.default_rng(seed), 5
    Q = np.linalg.qr(rng.normal(size=(g, g)))[0]
    forgotten = nlts.BayesianLinearRegression((Q * rng.uniform(0.5, 2, g)) @ Q.T, np.zeros(g), 6, 6)
    A, E, w = invertible_map(rng, g), rng.normal(size=(8, g)), rng.normal(size=(1, g))
    E_new = E @ A.T
    S_true = np.linalg.inv(A @ forgotten.precision @ A.T)
    s2 = np.diag(E @ np.linalg.inv(forgotten.precision) @ E.T)
    close(np.diag(E_new @ S_true @ E_new.T), s2)
    for ridge in (1e-3, 1e-5):
        match = functools.partial(nlts.match_covariance, ridge=ridge)
        ((Phi0, mu0),) = nlts.likelihood_matching([forgotten], [E], [E_new], w, 0.25, match=match)
        matched = np.diag(E_new @ np.linalg.inv(Phi0) @ E_new.T)
        rho = ridge * np.mean((E_new ** 2).sum(1) ** 2)
        assert np.linalg.norm(matched - s2) <= 1.001 * np.sqrt(rho) * np.linalg.norm(S_true)
        close(mu0, w[0])


def test_rows_that_cancel_are_matched_all_the_same(nlts):
    forgotten = nlts.BayesianLinearRegression(np.eye(2), np.zeros(2), 6, 6)
    E = np.array([[1.0, 2.0], [-1.0, -2.0]])
    ((Phi0, _),) = nlts.likelihood_matching([forgotten], [E], [3 * E], np.ones((1, 2)), 0.25)
    assert 9 * E[0] @ np.linalg.solve(Phi0, E[0]) == pytest.approx(5, rel=0.01)


def test_ablations_differ_only_in_their_priors(nlts):
    """Up to the first phase all make the same choices; after it they hold the same rows."""
    agents = {name: small_agent(nlts, prior=name) for name in PRIORS}
    played = {tuple(advance(agent, 40)) for agent in agents.values()}
    assert len(played) == 1
    both, mean, none, _ = agents.values()
    for agent in agents.values():
        for p, q in zip(both.network.parameters(), agent.network.parameters(), strict=True):
            assert torch.equal(p, q)
    for i in range(3):
        for agent in agents.values():
            close(agent.arms[i].Phi, both.arms[i].Phi)
            close(agent.arms[i].f, both.arms[i].f)
        close(mean.arms[i].mu0, nlts.last_layer_weights(mean.network)[i])
        close(mean.arms[i].mu0, both.arms[i].mu0)
        assert not none.arms[i].mu0.any()
        for agent in (mean, none):
            close(agent.arms[i].Phi0, 0.25 * np.eye(6))


@pytest.mark.parametrize("prior", PRIORS)
def test_an_arm_that_is_never_played_gets_a_proper_prior(nlts, prior):
    agent = small_agent(nlts, prior=prior)
    for t in range(80):
        context, rewards = step_of(agent)
        agent.update(context, t % 2, rewards[t % 2])
    arm = agent.arms[2]
    assert (arm.a, arm.b, arm.n) == (6.0, 6.0, 0)
    assert np.linalg.eigvalsh(arm.precision)[0] > 0
    if prior in ("likelihood_matching", "mean_prior"):
        close(arm.mu0, nlts.last_layer_weights(agent.network)[2])


def test_where_there_is_nothing_to_match_the_precision_stays(nlts):
    """An arm without tuples, one whose features are all 0, and one with something to match."""
    E = np.array([[1.0, 2.0], [0.0, 1.0]])
    forgotten = []
    for _ in range(3):
        forgotten.append(nlts.BayesianLinearRegression(0.25 * np.eye(2), np.zeros(2), 6, 6))
        forgotten[-1].update([1.0, 2.0], 1.0)                     # has left the buffer
    E_old, E_new = [E[:0], E, E], [E[:0], 0 * E, E]
    priors = nlts.likelihood_matching(forgotten, E_old, E_new, np.ones((3, 2)), 0.25)
    for Phi0, mu0 in priors[:2]:
        np.testing.assert_array_equal(Phi0, [[1.25, 2.0], [2.0, 4.25]])
        np.testing.assert_array_equal(mu0, [1.0, 1.0])
    assert not np.allclose(priors[2][0], priors[0][0])


def test_a_prior_of_ones_own_takes_five_lines(nlts):
    def stubborn(forgotten, E_old, E_new, weights, lam):
        """Keep what left, as if no feature had moved."""
        return [(old.precision, old.mu_hat) for old in forgotten]

    agent = small_agent(nlts, prior=stubborn, P=0)
    archive = Archive(agent)
    archive.advance(100)
    for i, arm in enumerate(agent.arms):
        phi, r = archive.rows(nlts, i)
        assert_posterior(arm, printed(phi, r, 0.25 * np.eye(6), np.zeros(6)), len(r), rtol=1e-7)


# The loop -----------------------------------------------------------------------------------------

def test_the_first_prior_is_as_configured_and_of_the_size_of_the_features(nlts):
    agent = small_agent(nlts, lam=1, a0=2, b0=3)
    for arm in agent.arms:
        np.testing.assert_array_equal(arm.precision, np.eye(6))
        assert (arm.a, arm.b, arm.n) == (2, 3, 0) and not arm.mu_hat.any()
    default = nlts.Config()
    assert (default.lam, default.a0, default.b0) == (0.25, 6, 6)


def test_the_network_learns_every_L_steps_and_only_then(nlts):
    phases = []

    def train(network, *_):
        phases.append(agent.t)
        assert torch.equal(network.weights, agent.network.weights)   # goes on from the last phase
        network.weights.data += 1

    agent = small_agent(nlts, train=train, L=25)
    advance(agent, 110)
    assert phases == [25, 50, 75, 100]
    agent = small_agent(nlts)
    before = copy.deepcopy(agent.network.state_dict())
    advance(agent, 39)
    for name, value in agent.network.state_dict().items():
        assert torch.equal(value, before[name])
    advance(agent, 1)
    assert not torch.equal(agent.network.weights, before["weights"])


def test_features_are_those_of_the_context_and_of_the_network_as_it_is(nlts):
    agent, one, two = small_agent(nlts), np.ones(4), np.full(4, 2.0)
    advance(agent, 10)
    agent.act(one)
    agent.update(two, 0, 1.0)                     # another context than the one it acted on
    contexts, r = agent.buffer.rows_of(0)
    phi = nlts.last_layer_activations(agent.network, contexts)
    close(agent.arms[0].Phi, phi.T @ phi)
    before = agent.phi(one)
    agent.learn()
    assert not np.allclose(agent.phi(one), before)
    close(agent.phi(one), nlts.last_layer_activations(agent.network, one[None])[0])


@pytest.mark.parametrize("prior", PRIORS)
def test_no_state_is_shared_between_arms_phases_or_agents(nlts, prior):
    def arrays(*agents):
        posteriors = [arm for agent in agents for arm in agent.arms]
        values = [value for arm in posteriors for value in vars(arm).values()]
        return [value for value in values if isinstance(value, np.ndarray)]

    agent, other = (small_agent(nlts, prior=prior) for _ in range(2))
    for each in (agent, other):
        advance(each, 40)
    before = copy.deepcopy([arrays(agent), arrays(other)])
    old = arrays(agent, other)
    advance(agent, 40)
    for kept, now in zip(before[1], arrays(other), strict=True):
        np.testing.assert_array_equal(kept, now)
    for new in arrays(agent):
        assert not any(np.shares_memory(new, array) for array in old)
        assert not np.shares_memory(new, agent.network.weights.detach().numpy())
    for i, arm in enumerate(agent.arms):
        for other_arm in agent.arms[:i]:
            assert not np.shares_memory(arm.Phi0, other_arm.Phi0)
            assert not np.shares_memory(arm.mu0, other_arm.mu0)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("scales", [[1e3] * 4, [1e-4] * 4, [1, 1e-3, 1e3, 10]])
def test_learning_survives_contexts_of_many_scales(nlts, scales, prior):
    agent = nlts.NeuralLinearTS(nlts.MLP(4, 3, 20), 3, 60, prior_of(nlts, prior), L=100, P=5)
    for _ in range(300):
        context, rewards = step_of(agent)
        context = context * scales
        arm = agent.act(context)
        agent.update(context, arm, rewards[arm])
    for arm in agent.arms:
        assert np.isfinite(arm.mu_hat).all() and arm.b > 5.9


@pytest.mark.parametrize("memory, prior", [(None, "likelihood_matching"), (18, "carried_prior")])
@pytest.mark.parametrize("scale", [1e-9, 1e9, 1e30])
def test_learning_survives_rewards_of_many_scales(nlts, scale, memory, prior):
    """A b of 1e18 less another one is not exactly the 6 that is left, but it stays positive."""
    agent = small_agent(nlts, memory=memory, prior=prior, P=2, L=20)
    archive = Archive(agent)
    archive.advance(70, scale=scale)
    for i, arm in enumerate(agent.arms):
        assert np.isfinite(arm.mu_hat).all() and 0 < arm.b < np.inf
        if memory is None:
            phi, r = archive.rows(nlts, i)
            expected = printed(phi, r, 0.25 * np.eye(6), np.zeros(6))
            assert arm.b == pytest.approx(expected[3], rel=1e-6)


# Other networks and agents ------------------------------------------------------------------------

def test_a_users_own_network_works(nlts):
    A = np.random.default_rng(0).normal(size=(5, 4))
    agent = small_agent(nlts, network=LinearFeatures(A, 3), P=5)
    assert {*advance(agent, 90)} == {0, 1, 2}
    network = nlts.TextCNN(20, 2, size=4, widths=(2, 3), hidden=5)
    text = nlts.NeuralLinearTS(network, 2, memory=10, L=20, P=2)
    for t in range(45):
        context = np.random.default_rng(t).integers(20, size=8)
        text.update(context, text.act(context), float(3 in context))
    assert text.arms[0].n + text.arms[1].n == 45


class WithDropout(LinearFeatures):
    """A user's network that is random while it is trained."""

    def forward(self, x):
        phi = torch.nn.functional.dropout(self.features(x), 0.5, self.training)
        return self.last(phi)


def test_dropout_is_off_between_learning_phases_and_seeded_in_them(nlts):
    weights = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        network = WithDropout(np.random.default_rng(0).normal(size=(5, 4)), 3)
        network.last.weight.data = torch.ones(3, 5, dtype=torch.float64)
        state = torch.random.get_rng_state()
        agent = small_agent(nlts, network=network, memory=np.int64(18), lr=np.float64(0.01), P=5)
        advance(agent, 45)
        assert not agent.network.training
        assert torch.equal(state, torch.random.get_rng_state())
        weights.append(nlts.last_layer_weights(agent.network))
    np.testing.assert_array_equal(*weights)


def greedy_agent(nlts, seed=0, epsilon=0.2, **options):
    network = nlts.MLP(4, 3, 6, seed=seed)
    options = {"L": 40, "P": 20, "batch": 8} | options
    return nlts.EpsilonGreedy(network, 3, epsilon, seed=seed, **options)


def test_epsilon_greedy_explores_with_probability_epsilon_and_else_takes_the_best(nlts):
    """Greedy choices among 4000: 1 - epsilon + epsilon/3 (4 sigma: one seed in 16,000)."""
    agent = greedy_agent(nlts, epsilon=0.3, initial_pulls=0)
    context = np.array([1.0, -1.0, 2.0, 0.5])
    best = int(agent.network(torch.as_tensor(context)[None]).argmax())
    share = np.mean([agent.act(context) == best for _ in range(4000)])
    p = 0.7 + 0.1
    assert abs(share - p) < 4 * np.sqrt(p * (1 - p) / 4000)


AGENTS = {
    "linear": lambda nlts, seed=0: nlts.LinearTS(4, 3, seed=seed),
    "printed": lambda nlts, seed=0: nlts.LinearTS(4, 3, v=0.5, seed=seed),
    "full": lambda nlts, seed=0: small_agent(nlts, seed, memory=None),
    "limited": small_agent,
    "greedy": greedy_agent,
}


@pytest.mark.parametrize("kind", AGENTS)
def test_same_seed_same_actions_whatever_ran_before(nlts, kind):
    first = advance(AGENTS[kind](nlts, seed=3), 90)
    np.random.seed(1)
    torch.manual_seed(1)
    advance(AGENTS[kind](nlts, seed=4), 45)
    assert advance(AGENTS[kind](nlts, seed=3), 90) == first
    assert advance(AGENTS[kind](nlts, seed=5), 90) != first
