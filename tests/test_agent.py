"""Tests of agents: Algorithm 1, networks and their training, priors, the loop of Algorithm 2."""
import copy
import functools
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import nlts_beyond
from tests.oracles import (
    LinearFeatures,
    array_of,
    assert_posterior,
    assert_same_state,
    close,
    maps,
    numbers,
    printed,
    regressions,
    small_agent,
    state_of,
    step_of,
    variances,
)

PRIORS = ["likelihood_matching", "mean_prior", "no_prior", "carried_prior"]


def prior_of(nlts, name):
    return getattr(nlts_beyond if name == "carried_prior" else nlts, name)


def advance(agent, steps, seed=0):
    """Play; returns the arms. Goes on where the agent is."""
    played = []
    for _ in range(steps):
        context, rewards = step_of(agent, seed)
        played.append(agent.act(context))
        agent.update(context, played[-1], rewards[played[-1]])
    return played


# Sec. 2: Algorithm 1 ------------------------------------------------------------------------------

@pytest.mark.parametrize("draw", ["act", "scores"])
def test_linear_ts_draws_the_choices_that_its_posterior_gives(nlts, draw):
    """P(arm 1) is the closed form for two arms with known noise (4 sigma: one seed in 16,000)."""
    agent, b = nlts.LinearTS(2, 2, v=1.0, lam=1, initial_pulls=0), np.array([0.6, -0.8])
    agent.update([1.0, 0.0], 0, 0.5)
    agent.update([1.0, 1.0], 1, 0.9)
    mean = [b @ arm.mu_hat for arm in agent.arms]
    variance = sum(b @ np.linalg.solve(arm.precision, b) for arm in agent.arms)
    p = stats.norm.cdf((mean[1] - mean[0]) / np.sqrt(variance))
    choose = agent.act if draw == "act" else lambda b: agent.scores(b).argmax()
    share = np.mean([choose(b) for _ in range(3000)])
    assert abs(share - p) < 4 * np.sqrt(p * (1 - p) / 3000)


def test_noise_is_a_function_of_all_arms(nlts):
    """It is called once per decision, before any sample, and its nu2 are those that are used."""
    calls = []

    def noise(arms, config, rng):
        calls.append((len(arms), config.b0, rng))
        return [1e-30, 4.0, 1e-30]

    agent = nlts.LinearTS(2, 3, noise=noise, initial_pulls=0, b0=3)
    agent.update([1.0, 0.0], 0, 1.0)
    played = [agent.act([1.0, 0.0]) for _ in range(200)]
    assert calls == [(3, 3, agent.rng)] * 200
    assert {*played} == {0, 1}                               # 0 is sure of 0.8, 1 is anything


@pytest.mark.parametrize("order", ["rewards come late", "rewards come at once"])
def test_initial_pulls_go_in_turn(nlts, order):
    """Five arms, two pulls: each arm twice in the first ten steps, then sampling begins."""
    agent = nlts.LinearTS(2, 5, initial_pulls=2)
    for t in range(10):
        before = agent.rng.bit_generator.state
        with pytest.raises(ValueError, match="^context"):
            agent.act([1.0])                                 # it counts nothing
        assert agent.act([1, 2]) == t % 5
        assert agent.rng.bit_generator.state == before
        if order == "rewards come at once":
            agent.update([1, 2], t % 5, 0)
    assert agent.chosen.tolist() == [2] * 5
    agent.act([1, 2])
    assert agent.rng.bit_generator.state != before and agent.chosen.sum() == 11


def test_a_log_that_is_fed_by_update_counts_as_pulls(nlts):
    """Ten rewards of one arm do not end the initial pulls of the others."""
    agent = nlts.LinearTS(2, 3, initial_pulls=2)
    for _ in range(10):
        agent.update([1, 2], 1, 0)
    assert [agent.act([1, 2]) for _ in range(4)] == [0, 2, 0, 2]
    first = [nlts.LinearTS(2, 3, seed=seed, initial_pulls=0).act([1, 2]) for seed in range(20)]
    assert {*first} == {0, 1, 2}                             # pulls can be left out


@given(data=regressions(n=8), arms=st.lists(st.integers(0, 2), min_size=8, max_size=8))
def test_an_arm_counts_its_own_plays_only(nlts, data, arms):
    (E, r, _, _), arms = data, np.array(arms)
    g = E.shape[1]
    agent = nlts.LinearTS(g, 3)
    for b, arm, reward in zip(E, arms, r, strict=True):
        agent.update(b, arm, reward)
    assert agent.t == 8
    for i, arm in enumerate(agent.arms):
        expected = printed(E[arms == i], r[arms == i], 0.25 * np.eye(g), np.zeros(g))
        assert_posterior(arm, expected, np.count_nonzero(arms == i))


# Sec. 3, 1: networks and their training -----------------------------------------------------------

@given(W=array_of((3, 2), numbers), bias=array_of(3, numbers),
       weights=array_of((4, 3), numbers), x=array_of((5, 2), numbers))
def test_mlp_is_its_features_times_its_weights_exactly(nlts, W, bias, weights, x):
    network = nlts.MLP(2, 4, hidden=3)
    for parameter, value in zip(network.parameters(), (W, bias, weights), strict=True):
        parameter.data = torch.as_tensor(value)
    phi = np.maximum(0, x @ W.T + bias)
    np.testing.assert_array_equal(nlts.last_layer_activations(network, x), phi)
    np.testing.assert_array_equal(nlts.last_layer_weights(network), weights)
    close(network(torch.as_tensor(x)).detach().numpy(), phi @ weights.T)


def test_first_weights_are_small_by_the_number_of_inputs(nlts):
    network = nlts.MLP(100, 4, hidden=500)
    assert 0.095 < network.input.abs().max() <= 0.1 and 0.29 < network.weights.abs().max() <= 0.3
    assert not network.bias.any()
    assert nlts.MLP(3, 2).weights.shape == (2, 50)           # the paper's size


def test_settings_are_those_of_the_authors_where_the_paper_is_silent(nlts):
    config = nlts.Config()
    assert (config.L, config.P) == (400, 800)                # Sec. 4.1
    assert (config.a0, config.b0, config.batch, config.initial_pulls) == (6, 6, 64, 2)


def test_networks_leave_the_global_random_state_alone(nlts):
    before = torch.random.get_rng_state()
    for make in (nlts.MLP, nlts.TextCNN):
        one, two, other = make(9, 2), make(9, 2, seed=0), make(9, 2, seed=4)
        for p, q in zip(one.parameters(), two.parameters(), strict=True):
            assert torch.equal(p, q)
        assert not torch.equal(one.weights, other.weights)
    assert torch.equal(before, torch.random.get_rng_state())


def test_text_cnn_is_convolutions_and_the_maximum_over_time(nlts):
    """Against plain loops over filters and places."""
    network = nlts.TextCNN(vocabulary=30, n_arms=5, size=8, widths=(2, 3), hidden=4).eval()
    x = np.random.default_rng(0).integers(30, size=(7, 10))
    p = {name: value.detach().numpy() for name, value in network.named_parameters()}
    pooled = []
    for k, width in enumerate((2, 3)):
        W, bias = p[f"convolutions.{k}.weight"], p[f"convolutions.{k}.bias"]     # (8, 8, width)
        for i in range(8):
            places = [(p["embedding.weight"][x[:, j:j + width]] * W[i].T).sum((1, 2)) + bias[i]
                      for j in range(10 - width + 1)]
            pooled.append(np.maximum(np.max(places, 0), 0))
    phi = np.transpose(pooled) @ p["dense.weight"].T + p["dense.bias"]
    close(nlts.last_layer_activations(network, x), phi, rtol=1e-5)
    close(network(torch.as_tensor(x)).detach().numpy(), phi @ p["weights"].T, rtol=1e-5)


def test_text_cnn_starts_and_drops_out_as_the_linked_program_does(nlts):
    network = nlts.TextCNN(1000, 5, size=32, widths=(3, 4), hidden=64)
    embeddings, weights = network.embedding.weight.detach(), network.weights.detach()
    assert 0.999 < embeddings.abs().max() <= 1 and abs(embeddings.var() - 1 / 3) < 0.02
    assert 0.29 < weights.abs().max() <= 0.3
    for convolution in network.convolutions:
        filters = convolution.weight.detach()
        assert 0.199 < filters.abs().max() <= 0.2            # a normal of sd 0.1, cut at two sd
        assert filters.std() == pytest.approx(0.088, abs=0.004)
        assert (convolution.bias == 0.1).all()
    network.dense.weight.data, network.dense.bias.data = torch.eye(64), torch.zeros(64)
    x = torch.randint(1000, (40, 60), generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    pooled, dropped = network.eval().features(x), network.train().features(x)
    kept = dropped != 0
    assert torch.equal(dropped[kept], 2 * pooled[kept])
    assert abs(kept.double().mean() - 0.5) < 4 * 0.5 / np.sqrt(kept.numel())
    with pytest.raises(ValueError, match="^context: "):
        nlts.last_layer_activations(network, np.full((1, 60), 1000))         # no such word


def adam_by_hand(parameters, batches, lr):
    """Adam on Eq. 3 for an MLP: input (g, d), bias (g,) and weights (N, g), gradients by hand."""
    m, v = [np.zeros_like(p) for p in parameters], [np.zeros_like(p) for p in parameters]
    for step, (x, played, rewards) in enumerate(batches, 1):
        W, bias, V = parameters
        phi = np.maximum(x @ W.T + bias, 0)
        error = 2 * ((phi * V[played]).sum(1) - rewards) / len(rewards)
        dV = np.zeros_like(V)
        np.add.at(dV, played, error[:, None] * phi)          # only the arm that was played
        dphi = error[:, None] * V[played] * (phi > 0)
        gradients = [dphi.T @ x, dphi.sum(0), dV]
        m = [0.9 * m_k + 0.1 * g_k for m_k, g_k in zip(m, gradients, strict=True)]
        v = [0.999 * v_k + 0.001 * g_k ** 2 for v_k, g_k in zip(v, gradients, strict=True)]
        parameters = [p - lr * (m_k / (1 - 0.9 ** step))
                      / (np.sqrt(v_k / (1 - 0.999 ** step)) + 1e-8)
                      for p, m_k, v_k in zip(parameters, m, v, strict=True)]
    return parameters


def test_train_takes_adam_steps_on_the_squared_error(nlts):
    """Four mini-batches, drawn with replacement from the whole buffer; all parameters."""
    rng, network, buffer = np.random.default_rng(0), nlts.MLP(4, 3, 6), nlts.ReplayBuffer(None)
    for x in rng.normal(size=(60, 4)):
        buffer.add(x, int(rng.integers(3)), rng.normal())
    draws = np.random.default_rng(9)
    draws.integers(2 ** 31)                                  # train first draws a seed for torch
    batches = []
    for _ in range(4):
        rows = draws.integers(60, size=16)
        batches.append([x[rows] for x in buffer.arrays()])
    first = [p.detach().numpy().copy() for p in network.parameters()]
    nlts.train(network, buffer, nlts.Config(P=4, batch=16, lr=1e-2), np.random.default_rng(9))
    for p, expected in zip(network.parameters(), adam_by_hand(first, batches, 1e-2), strict=True):
        close(p.detach().numpy(), expected)
    assert not network.training


class WithDropout(LinearFeatures):
    """A user's network that is random while it is trained."""

    def forward(self, x):
        phi = torch.nn.functional.dropout(self.features(x), 0.5, self.training)
        return phi @ self.weights.T


def test_dropout_is_off_between_learning_phases_and_seeded_in_them(nlts):
    weights = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        state = torch.random.get_rng_state()
        network = WithDropout(np.random.default_rng(0).normal(size=(5, 4)), 3)
        agent = small_agent(nlts, network=network, memory=np.int64(18), lr=np.float64(0.01), P=5)
        with torch.no_grad():                                # a user's, which training ignores
            advance(agent, 45)
        assert not agent.network.training
        assert torch.equal(state, torch.random.get_rng_state())
        weights.append(nlts.last_layer_weights(agent.network))
    np.testing.assert_array_equal(*weights)
    assert (weights[0] != 1).all()


# Priors -------------------------------------------------------------------------------------------

@given(data=regressions(n=8).flatmap(lambda x: st.tuples(st.just(x), maps(len(x[-1])))))
@settings(max_examples=20)
def test_the_papers_prior_reproduces_s2_where_it_can(nlts, data):
    """Features moved by an invertible map, so that an S with these s2 exists, S_true. The objective
    at the solution is not above that at S_true: a bound on the misfit that falls with the ridge."""
    (E, _, Phi_old, mu_old), A = data
    E = E + 6 * np.eye(*E.shape)
    old = nlts.BayesianLinearRegression(Phi_old, mu_old, 6, 6)
    E_new, S_true = E @ A.T, np.linalg.inv(A @ Phi_old @ A.T)
    s2 = variances(E, np.linalg.inv(Phi_old))
    close(variances(E_new, S_true), s2)
    for ridge in (1e-3, 1e-5):
        match = functools.partial(nlts.match_covariance, ridge=ridge)
        ((Phi0, mu0),) = nlts.likelihood_matching([old], [E], [E_new], mu_old[None], 0.25, match)
        rho = ridge * np.mean((E_new ** 2).sum(1) ** 2)
        misfit = variances(E_new, np.linalg.inv(Phi0)) - s2
        assert np.linalg.norm(misfit) <= 1.001 * np.sqrt(rho) * np.linalg.norm(S_true) + 1e-9
        close(mu0, mu_old)


def test_the_ablations_start_anew(nlts):
    """mu prior: lam I and the last layer's weights; no prior: lam I and 0."""
    forgotten, rows = [nlts.first_prior(3, nlts.Config())] * 2, [np.ones((4, 3))] * 2
    for prior, mean in ((nlts.mean_prior, 7), (nlts.no_prior, 0)):
        for Phi0, mu0 in prior(forgotten, rows, rows, np.full((2, 3), 7.0), 0.5):
            np.testing.assert_array_equal(Phi0, 0.5 * np.eye(3))
            np.testing.assert_array_equal(mu0, [mean] * 3)


def test_where_there_is_nothing_to_match_the_precision_stays(nlts):
    """An arm without tuples, one whose features are all 0, one whose features were all 0, and one
    with something to match, where rows that cancel are matched all the same."""
    E = np.array([[1.0, 2.0], [-1.0, -2.0]])
    forgotten = []
    for _ in range(4):
        forgotten.append(nlts.BayesianLinearRegression(0.25 * np.eye(2), np.zeros(2), 6, 6))
        forgotten[-1].update([1.0, 2.0], 1.0)                     # has left the buffer
    E_old, E_new = [E[:0], E, 0 * E, E], [E[:0], 0 * E, E, 3 * E]
    priors = nlts.likelihood_matching(forgotten, E_old, E_new, np.ones((4, 2)), 0.25)
    for Phi0, mu0 in priors[:3]:
        np.testing.assert_array_equal(Phi0, [[1.25, 2.0], [2.0, 4.25]])
        np.testing.assert_array_equal(mu0, [1.0, 1.0])
    s2 = E[0] @ np.linalg.solve([[1.25, 2.0], [2.0, 4.25]], E[0])
    assert 9 * E[0] @ np.linalg.solve(priors[3][0], E[0]) == pytest.approx(s2, rel=0.01)


# The loop of Algorithm 2 --------------------------------------------------------------------------

def test_without_retraining_it_is_linear_ts_on_the_features(nlts):
    agent, linear = small_agent(nlts, 1, memory=None, L=10 ** 6), nlts.LinearTS(6, 3, seed=1)
    for _ in range(60):
        context, rewards = step_of(agent)
        phi = agent.phi(context)
        close(phi, nlts.last_layer_activations(agent.network, context[None])[0])
        np.testing.assert_array_equal(agent.scores(context), linear.scores(phi))
        arm = agent.act(context)
        assert arm == linear.act(phi)
        agent.update(context, arm, rewards[arm])
        linear.update(phi, arm, rewards[arm])


def test_the_first_prior_is_as_configured_and_of_the_size_of_the_features(nlts):
    agent = small_agent(nlts, lam=1, a0=2, b0=3)
    for arm in agent.arms:
        np.testing.assert_array_equal(arm.precision, np.eye(6))
        assert (arm.a, arm.b, arm.n, arm.R2) == (2, 3, 0, 0) and not arm.mu_hat.any()
    np.testing.assert_array_equal(small_agent(nlts).arms[0].precision, 0.25 * np.eye(6))


@pytest.mark.parametrize("prior", PRIORS)
def test_a_counts_the_plays_of_its_arm_always(nlts, prior):
    agent, plays = small_agent(nlts, prior=prior_of(nlts, prior), L=15, P=2), np.zeros(3)
    for _ in range(100):
        plays[advance(agent, 1)[0]] += 1
        assert [arm.a for arm in agent.arms] == list(6 + plays / 2)
        assert [arm.n for arm in agent.arms] == list(plays)


def test_the_network_learns_every_L_steps_and_only_then(nlts):
    """Each phase goes on with the weights that the last one left, and with its random numbers."""
    phases = []

    def train(network, buffer, config, rng):
        phases.append(agent.t)
        assert torch.equal(network.weights, agent.network.weights)
        network.weights.data += 1
        rng.random(7)

    agent = small_agent(nlts, train=train, L=25)
    network, first = agent.network, nlts.last_layer_weights(agent.network)
    advance(agent, 24)
    np.testing.assert_array_equal(nlts.last_layer_weights(network), first)
    expected = copy.deepcopy(agent.rng)
    agent.update([1.0] * 4, 0, 1.0)
    expected.random(7)
    assert agent.rng.bit_generator.state == expected.bit_generator.state
    advance(agent, 85)
    assert phases == [25, 50, 75, 100] and agent.network is network
    close(nlts.last_layer_weights(network), first + 4)


# Other agents -------------------------------------------------------------------------------------

def greedy_agent(nlts, seed=0, memory=18, epsilon=0.2, **options):
    network = nlts.MLP(4, 3, 6, seed=seed)
    options = {"L": 40, "P": 20, "batch": 8} | options
    return nlts.EpsilonGreedy(network, 3, memory, epsilon, seed=seed, **options)


def test_epsilon_greedy_explores_with_probability_epsilon_and_else_takes_the_best(nlts):
    """Greedy choices among 4000: 1 - epsilon + epsilon/3 (4 sigma: one seed in 16,000)."""
    agent = greedy_agent(nlts, epsilon=0.3, initial_pulls=0)
    context = np.array([1.0, -1.0, 2.0, 0.5])
    D = agent.network(torch.as_tensor(context)[None])[0].detach().numpy()
    share = np.mean([agent.act(context) == D.argmax() for _ in range(4000)])
    assert abs(share - 0.8) < 4 * np.sqrt(0.8 * 0.2 / 4000)
    close(greedy_agent(nlts, epsilon=0.0).scores(context), D)
    at_random = greedy_agent(nlts, epsilon=1.0).scores(context)
    assert at_random.shape == (3,) and not np.isin(at_random, D).any()


@pytest.mark.parametrize("memory", [None, 18])
def test_epsilon_greedy_starts_its_posteriors_anew_in_each_phase(nlts, memory):
    """Eq. 6 is not solved: after a phase Phi0 is lam I."""
    agent = greedy_agent(nlts, memory=memory)
    advance(agent, 80)
    for arm in agent.arms:
        np.testing.assert_array_equal(arm.Phi0, 0.25 * np.eye(6))


AGENTS = {
    "linear": lambda nlts, seed=0: nlts.LinearTS(4, 3, seed=seed),
    "printed": lambda nlts, seed=0: nlts.LinearTS(4, 3, v=0.5, seed=seed),
    "full": lambda nlts, seed=0: small_agent(nlts, seed, memory=None),
    "limited": small_agent,
    "carried": lambda nlts, seed=0: small_agent(nlts, seed, prior=nlts_beyond.carried_prior,
                                                noise=nlts_beyond.pooled_noise),
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


@pytest.mark.parametrize("keep", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))],
                         ids=["deepcopy", "pickle"])
@pytest.mark.parametrize("kind", AGENTS)
def test_a_kept_agent_goes_on_as_the_agent_does(nlts, kind, keep):
    agent = AGENTS[kind](nlts)
    advance(agent, 45)                                       # over a learning phase
    kept = keep(agent)
    assert advance(kept, 40) == advance(agent, 40)           # over the next one, each by itself
    for arm, other in zip(kept.arms, agent.arms, strict=True):
        assert_same_state(state_of(arm), state_of(other))
