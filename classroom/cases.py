"""The tests of every function to write. What a test asks for stands in the function's docstring.

A test is written as if it ran in the student's process: `s.test` begins it, `s.nlts` is the
student's module, numbers come from `s`, and `s.same` says what is compared with the reference.
"""
import numpy as np

from .scripts import case

POSTERIOR = "BayesianLinearRegression"
MATCHED = {"digits": 2e-2}                       # of solvers: two digits


# blr ----------------------------------------------------------------------------------------------

@case(f"{POSTERIOR}.update")
def posterior_update(s):
    s.test("Phi, f and R2: sums over the tuples")
    arm, _, _ = s.posterior(3, 2)
    for _ in range(4):
        arm.update(s.normal(3), s.normal())
    s.same(arm.Phi, arm.f, arm.R2)

    s.test("a and n: counts of the tuples")
    arm, _, _ = s.posterior(3, 2)
    for _ in range(4):
        arm.update(s.normal(3), s.normal())
    s.same(arm.a, arm.n)

    s.test("precision, and a root with root root' = precision^-1")
    arm, _, _ = s.posterior(3, 2)
    for _ in range(4):
        arm.update(s.normal(3), s.normal())
    s.same(arm.precision)
    s.same(arm.root, how="root")

    s.test("mu_hat, with a prior mean that is not zero")
    arm, _, _ = s.posterior(4)
    for _ in range(2):
        arm.update(s.normal(4), s.normal())
        s.same(arm.mu_hat)

    s.test("b, with the whole precision and the prior mean")
    arm, _, _ = s.posterior(3, 2)
    for size in (1, 3):
        arm.update(s.normal(3), size * s.normal())
        s.same(arm.b)

    s.test("the example by hand of the page: phi = 2 and r = 3, then phi = 1 and r = 0")
    arm = s.arm([[1.0]], [0.0], 6.0, 6.0)
    for phi, r in ((2.0, 3.0), (1.0, 0.0)):
        arm.update(np.array([phi]), r)
        s.same(*s.state(arm))

    s.test("rows (n, g) at once, as one after the other")
    arm, _, _ = s.posterior(3)
    arm.update(s.normal(5, 3), s.normal(5))
    s.same(*s.state(arm))
    s.same(arm.root, how="root")


@case(f"{POSTERIOR}.variance")
def posterior_variance(s):
    s.test("one dimension: phi^2 over the precision")
    s.same(s.arm([[4.0]], [0.0], 6.0, 6.0).variance(s.normal(3, 1)))

    s.test("each row, under a posterior with data")
    arm, _, _ = s.posterior(4, 6)
    s.same(arm.variance(s.normal(5, 4)))


@case(f"{POSTERIOR}.predict")
def posterior_predict(s):
    s.test("mean, scale and degrees of freedom")
    for n in (0, 5):
        arm, _, _ = s.posterior(3, n)
        s.same(arm.predict(s.normal(3)))

    s.test("the scale depends on b and a")
    for b0 in (0.1, 10.0):
        arm, _, _ = s.posterior(2, 3, b0)
        s.same(arm.predict(s.normal(2)))


def same_posterior(s, arm):
    s.same(arm.precision, arm.mu_hat, arm.a, arm.b, arm.n, digits=1e-3)


@case(f"{POSTERIOR}.without")
def posterior_without(s):
    s.test("precision, mu_hat, a, b and n of what is left")
    arm, E, r = s.posterior(3, 6)
    same_posterior(s, arm.without(E[:2], r[:2]))

    s.test("without all tuples it is the prior")
    arm, E, r = s.posterior(4, 7)
    same_posterior(s, arm.without(E, r))

    s.test("without no tuple nothing changes, and the arm itself never does")
    arm, E, r = s.posterior(2, 3)
    same_posterior(s, arm.without(E[:1], r[:1]))
    same_posterior(s, arm.without(s.normal(0, 2), s.normal(0)))
    s.same(*s.state(arm))


# thompson -----------------------------------------------------------------------------------------

@case("inverse_gamma_noise")
def inverse_gamma_noise(s):
    s.test("one nu2 for each arm, from its own a and b, independent of the others")
    arms = [s.posterior(1, 3, b0)[0] for b0 in (0.3, 2.0, 20.0)]
    laws = [{"a": s.right[arm._path].a, "b": s.right[arm._path].b} for arm in arms]
    s.draws([s.function], arms, s.nlts.Config(), s.rng(), how="noises", laws=laws)


@case(f"{POSTERIOR}.sample")
def posterior_sample(s):
    s.test("a known noise variance is returned, and mu_tilde is drawn with it")
    s.samples([s.posterior(3, 4)[0]], 9.0)

    s.test("the covariance is the inverse of the precision, in a skew case")
    s.samples([s.arm([[50.0, 6.0], [6.0, 1.0]], [1.0, -1.0], 9.0, 2.0)], 1.0)

    s.test("nu2 is inverse gamma, and mu_tilde goes with it")
    s.samples([s.posterior(2, 3, 0.3)[0]])

    s.test("two arms in turn, independent of each other")
    s.samples([s.posterior(2, n)[0] for n in (2, 9)])


def first_pulls(s, agent, arms, d):
    """Some arms have been played less often than initial_pulls: no chance is in it."""
    agent.arms = arms
    for plays in ((0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (2, 1, 2), (5, 1, 9)):
        for arm, n in zip(arms, plays, strict=False):
            arm.n = n
        s.same(agent.act(s.normal(d)))


def level_arms(s, g, n_arms, phi):
    """Arms that are often the best, with one precision, and each with a noise of its own."""
    root = s.normal(g, g)
    precision = root @ root.T + np.eye(g)
    scale = np.sqrt(phi @ np.linalg.solve(precision, phi))
    arms = []
    for i, b in enumerate((0.5, 3.0, 30.0)[:n_arms]):
        mu_hat = s.normal(g)
        mu_hat = mu_hat - phi * (0.15 * i * scale + phi @ mu_hat) / (phi @ phi)
        arms.append(s.arm(precision, mu_hat, 3.0 + i, b, 9))
    return arms


@case("LinearTS.act")
def linearts_act(s):
    s.test("first the arm with the fewest plays, until each has initial_pulls")
    arms = [s.posterior(2, 1)[0] for _ in range(3)]
    first_pulls(s, s.nlts.LinearTS(2, 3, initial_pulls=2), arms, 2)

    s.test("each arm as often as its sample is the best")
    context = s.normal(2)
    agent = s.nlts.LinearTS(2, 3, seed=s.whole())
    s.plays(agent, context, context, level_arms(s, 2, 3, context))

    s.test("with v given the noise variance is v^2")
    context = s.normal(2)
    agent = s.nlts.LinearTS(2, 2, v=0.3, seed=s.whole())
    s.plays(agent, context, context, level_arms(s, 2, 2, context), 0.3)


@case("LinearTS.update")
def linearts_update(s):
    s.test("the played arm learns")
    agent = s.nlts.LinearTS(3, 2)
    for arm in (1, 0, 1):
        agent.update(s.normal(3), arm, s.normal())
    s.same(*s.state(agent.arms[0]), *s.state(agent.arms[1]))

    s.test("time goes on")
    agent = s.nlts.LinearTS(2, 2)
    agent.update(s.normal(2), 1, 1.0)
    s.same(agent.t)


# buffer -------------------------------------------------------------------------------------------

def add_five(s, buffer):
    for i in range(5):
        buffer.add(np.array([i, 1.0]), s.whole(0, 3), s.normal())
    s.same(buffer.tuples)


@case("ReplayBuffer.add")
def replaybuffer_add(s):
    s.test("below capacity everything is kept, in order of time")
    add_five(s, s.nlts.ReplayBuffer(5))

    s.test("without a capacity, too")
    add_five(s, s.nlts.ReplayBuffer(None))

    s.test("a full buffer loses the first tuple of the same arm")
    buffer = s.buffer_of([0, 1, 0, 2, 1], 5)
    for arm in (1, 0, 0, 2, 1):
        buffer.add(s.normal(2), arm, s.normal())
        s.same(buffer.tuples)

    s.test("if there is none, the first tuple of the arm that has most")
    buffer = s.buffer_of([2, 1, 0, 2, 1, 2], 6)
    buffer.add(s.normal(2), 4, s.normal())
    s.same(buffer.tuples)

    s.test("of several such arms, the lowest")
    buffer = s.buffer_of([2, 1, 2, 1], 4)
    buffer.add(s.normal(2), 0, s.normal())
    s.same(buffer.tuples)

    s.test("what is stored is a copy")
    buffer, context = s.nlts.ReplayBuffer(3), s.nlts.np.array(s.normal(2))
    buffer.add(context, 1, 0.5)
    context.fill(7.0)
    s.same(buffer.tuples)


@case("ReplayBuffer.arrays")
def replaybuffer_arrays(s):
    s.test("contexts, arms and rewards of all tuples, oldest first")
    s.same(s.buffer_of([0, 2, 1, 2]).arrays())


@case("ReplayBuffer.rows_of")
def replaybuffer_rows_of(s):
    s.test("contexts and rewards of one arm, oldest first")
    buffer = s.buffer_of([0, 2, 1, 2, 2])
    s.same(buffer.rows_of(2), buffer.rows_of(0))

    s.test("an arm without tuples has arrays of length 0")
    s.same(s.buffer_of([0, 2]).rows_of(1))


# invertible ---------------------------------------------------------------------------------------

@case("match_mean")
def match_mean(s):
    s.test("square and invertible: the same predictions under the new features")
    s.same(s.function(*s.square(1)[:3]), s.function(*s.square(3)[:3]), digits=1e-3)

    s.test("more tuples than features: least squares")
    s.same(s.function(s.normal(7, 3), s.normal(7, 3), s.normal(3)))

    s.test("fewer tuples than features: of many solutions the smallest")
    s.same(s.function(s.normal(2, 4), s.normal(2, 4), s.normal(4)))


@case("invertible_prior")
def invertible_prior(s):
    s.test("the example by hand of the page: from feature 2 to feature 6")
    numbers = np.array([[2.0]]), np.array([[6.0]]), np.array([1.5]), np.array([[4.0]])
    s.same(s.function(*numbers))

    s.test("square and invertible features: Eqs. 7 and 8")
    s.same(s.function(*s.square(3)), s.function(*s.square(3)), digits=1e-3)

    s.test("Phi_old is left as it is")
    E_old, E_new, mu_old, Phi_old = s.square(2)
    kept = s.nlts.np.array(Phi_old)
    s.same(s.function(E_old, E_new, mu_old, kept), kept, digits=1e-3)


# matching -----------------------------------------------------------------------------------------

def best_fit(s, n, g):
    E, s2 = s.normal(n, g), s.positive(n)
    s.same(s.function(E, s2), how="fits", E=E.tolist(), s2=s2.tolist())


@case("match_covariance_sdp")
def match_covariance_sdp(s):
    s.test("one dimension: the least squares of Eq. 6, without ridge and floor")
    best_fit(s, 1, 1)

    s.test("as many tuples as features")
    best_fit(s, 3, 3)

    s.test("more tuples than a covariance can match")
    best_fit(s, 12, 2)

    s.test("with ridge and floor: the one solution of a unique problem")
    s.same(s.function(s.normal(4, 3), s.positive(4), 0.1, 0.05), **MATCHED)


def dual_point(s):
    """Features, what they are to match, rho, least, and a y: no eigenvalue is near the bound, one
    is raised and one is not."""
    while True:
        E, s2, y = s.normal(4, 3), s.positive(4), s.normal(4)
        w = np.linalg.eigvalsh((E.T * y) @ E) - 0.05
        if np.abs(w).min() > 0.05 and w[0] < 0 < w[-1]:
            return E, s2, 0.1, 0.05, y


@case("_dual")
def dual(s):
    s.test("theta, w and x: one dimension, above the bound and below")
    for y in (1.5, -1.5):
        found = s.function(np.array([[1.0]]), np.array([1.0]), 0.5, 0.1, np.array([y]))
        s.same(found[0], found[1], found[2])

    s.test("theta, w and x: four tuples of three features")
    found = s.function(*dual_point(s))
    s.same(found[0], found[1], found[2])


@case("dual_gradient", "newton_step")
def dual_gradient(s):
    s.test("one dimension, above the bound and below")
    for y in (1.5, -1.5):
        s.same(s.function(np.array([[1.0]]), np.array([1.0]), 0.5, 0.1, np.array([y])))

    s.test("four tuples of three features")
    s.same(s.function(*dual_point(s)), s.function(*dual_point(s)))


@case("match_covariance")
def match_covariance(s):
    s.test("the solution of the semidefinite program")
    s.same(s.function(s.normal(4, 3), s.positive(4), 0.1, 0.05), **MATCHED)

    s.test("200 tuples of 20 features in time")
    s.same(s.function(s.normal(200, 20), s.positive(200)), **MATCHED)


# limited ------------------------------------------------------------------------------------------

@case("likelihood_matching")
def likelihood_matching(s):
    s.test("one arm: s2 of what was forgotten, matched under the new features; the last layer")
    arm, _, _ = s.posterior(3, 5)
    E_old, E_new = [s.normal(4, 3)], [s.normal(4, 3)]
    s.same(s.function([arm], E_old, E_new, s.normal(1, 3), 0.25), digits=1e-3)

    s.test("three arms, each with its own")
    forgotten = [s.posterior(2, n)[0] for n in (3, 4, 5)]
    E_old, E_new = [[s.normal(n, 2) for n in (2, 3, 4)] for _ in range(2)]
    s.same(s.function(forgotten, E_old, E_new, s.normal(3, 2), 0.25), digits=1e-3)


@case("NeuralLinearTS.act")
def neurallinearts_act(s):
    s.test("first the arm with the fewest plays, until each has initial_pulls")
    arms = [s.posterior(4, 1)[0] for _ in range(2)]
    first_pulls(s, s.network_agent(s.nlts.no_prior, 2), arms, 3)

    s.test("each arm as often as its sample is the best")
    seed, context = s.whole(), s.normal(3)
    while not (phi := s.features(seed, context[None])[0]).any():
        context = s.normal(3)                    # no unit of the network sees it
    network = s.nlts.MLP(3, 2, 4, seed=seed)
    agent = s.nlts.NeuralLinearTS(network, 2, 6, s.nlts.no_prior, seed=s.whole())
    s.plays(agent, context, phi, level_arms(s, 4, 2, phi))


@case("NeuralLinearTS.update")
def neurallinearts_update(s):
    s.test("the tuple goes to the buffer and to its arm")
    agent = s.network_agent(s.nlts.no_prior, 7, L=100)
    agent.update(s.normal(3), 1, 0.5)
    s.same(agent.t, agent.buffer.tuples, *s.state(agent.arms[0]), *s.state(agent.arms[1]))

    s.test("every L steps a learning phase")
    agent = s.network_agent(s.nlts.no_prior, 8, L=3)
    for _ in range(4):
        agent.update(s.normal(3), s.whole(0, 2), s.normal())
        s.same(agent.network.weights)


def after_learning(s, prior):
    agent = s.network_agent(prior)
    agent.learn()
    return agent


@case("NeuralLinearTS.learn")
def neurallinearts_learn(s):
    s.test("the network is trained on the buffer, by self.train")
    agent = after_learning(s, s.nlts.no_prior)
    s.same(agent.network.weights, agent.network.input)

    s.test("the last layer as mean: Phi0 and mu0 of every arm after a learning phase")
    agent = after_learning(s, s.nlts.mean_prior)
    for arm in (agent.arms[0], agent.arms[1]):
        s.same(arm.Phi0, arm.mu0)

    s.test("likelihood matching: Phi0 and mu0 of every arm")
    agent = after_learning(s, s.nlts.likelihood_matching)
    for arm in (agent.arms[0], agent.arms[1]):
        s.same(arm.Phi0, arm.mu0, digits=1e-3)

    s.test("a, b and n of every arm")
    agent = after_learning(s, s.nlts.mean_prior)
    for arm in (agent.arms[0], agent.arms[1]):
        s.same(arm.a, arm.b, arm.n)

    s.test("Phi, f and mu_hat of every arm: the buffer is put back")
    agent = after_learning(s, s.nlts.likelihood_matching)
    for arm in (agent.arms[0], agent.arms[1]):
        s.same(arm.Phi, arm.f, arm.mu_hat, digits=1e-3)


# prior --------------------------------------------------------------------------------------------

def prior_of(s, E_old, E_new):
    forgotten = [s.posterior(3, 4)[0], s.posterior(3, 4)[0]]
    s.same(s.function(forgotten, E_old, E_new, s.normal(2, 3), 0.25), how="priors")


@case("better_prior")
def better_prior(s):
    s.test("features that did not move: one (Phi0, mu0) per arm, symmetric and positive definite")
    E_old = [s.normal(5, 3), s.normal(0, 3)]
    prior_of(s, E_old, E_old)

    s.test("features that moved")
    E_old, E_new = [[s.normal(5, 3), s.normal(0, 3)] for _ in range(2)]
    prior_of(s, E_old, E_new)


# What bug hunts show: experiments, one for the bugs of each assignment ----------------------------

@case("symptom_blr")
def symptom_blr(s):
    s.test("predictions after each of twelve tuples")
    arm, phi = s.posterior(3)[0], s.normal(3)
    for _ in range(12):
        arm.update(s.normal(3), s.normal())
        s.same(arm.predict(phi))

    s.test("a prediction after six of twelve tuples are taken out")
    arm, E, r = s.posterior(3, 12)
    s.same(arm.without(E[:6], r[:6]).predict(s.normal(3)), digits=1e-3)


@case("symptom_thompson")
def symptom_thompson(s):
    s.test("noise variance and weights of 10,000 samples")
    s.samples([s.posterior(3, 5, 20.0)[0]])

    s.test("10,000 actions in one context")
    context = s.normal(2)
    s.plays(s.nlts.LinearTS(2, 3, seed=s.whole()), context, context, level_arms(s, 2, 3, context))


@case("symptom_buffer")
def symptom_buffer(s):
    s.test("contexts, arms and rewards in the memory, oldest first")
    buffer = s.nlts.ReplayBuffer(9)
    for arm in (0, 1, 2, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 3, 0, 0):
        buffer.add(s.normal(1), arm, s.normal())
    s.same(buffer.arrays())


@case("symptom_invertible")
def symptom_invertible(s):
    s.test("precision and mean under the new features")
    for g in (2, 3):
        s.same(s.nlts.invertible_prior(*s.square(g)), digits=1e-3)


@case("symptom_limited")
def symptom_limited(s):
    s.test("observations that the arms count after a learning phase")
    agent = after_learning(s, s.nlts.likelihood_matching)
    s.same(agent.arms[0].a, agent.arms[1].a)

    s.test("mean and s2 of predictions after a learning phase")
    agent, contexts = after_learning(s, s.nlts.likelihood_matching), s.normal(4, 4)
    for arm in (agent.arms[0], agent.arms[1]):
        s.same(arm.mu_hat, arm.variance(contexts), digits=1e-3)
