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
    for title, names in (("Phi, f and R2: sums over the tuples", ("Phi", "f", "R2")),
                         ("a and n: counts of the tuples", ("a", "n")),
                         ("precision, and a root with root root' = precision^-1", ("root",)),
                         ("mu_hat, with a prior mean that is not zero", ("mu_hat",)),
                         ("b, with the whole precision and the prior mean", ("b",))):
        s.test(title)
        arm, _, _ = s.posterior(3, 2)
        for size in (1, 3):
            arm.update(s.normal(3), size * s.normal())
            for name in names:
                s.same(getattr(arm, name), how="root" if name == "root" else "close")

    s.test("the example by hand of the page: phi = 2 and r = 3, then phi = 1 and r = 0")
    arm = s.arm([[1.0]], [0.0], 6.0, 6.0)
    for phi, r in ((2.0, 3.0), (1.0, 0.0)):
        arm.update(np.array([phi]), r)
        s.same(*s.state(arm))

    s.test("rows (n, g) at once, as one after the other; Phi0 and mu0 stay")
    arm, _, _ = s.posterior(3)
    arm.update(s.normal(5, 3), s.normal(5))
    s.same(*s.state(arm), arm.Phi0, arm.mu0)
    s.same(arm.root, how="root")


@case(f"{POSTERIOR}.s2")
def posterior_s2(s):
    s.test("one dimension: phi^2 over the precision")
    s.same(s.arm([[4.0]], [0.0], 6.0, 6.0).s2(s.normal(3, 1)))

    s.test("each row, under a posterior with data; the arm stays as it is")
    arm, _, _ = s.posterior(4, 6)
    s.same(arm.s2(s.normal(5, 4)), *s.state(arm))

    s.test("no rows, and as many rows as features")
    arm, _, _ = s.posterior(3, 4, 20.0)
    s.same(arm.s2(s.normal(0, 3)), arm.s2(s.normal(3, 3)))


def same_posterior(s, arm):
    s.same(arm.precision, arm.mu_hat, arm.a, arm.b, arm.n, digits=1e-3)


@case(f"{POSTERIOR}.without")
def posterior_without(s):
    s.test("precision, mu_hat, a, b and n of the tuples that are left")
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

def noises(s, scales):
    arms = [s.posterior(1, 3, b0)[0] for b0 in scales]
    rights = [s.right[arm._path] for arm in arms]
    laws = [{"law": "inverse gamma", "a": right.a, "b": right.b} for right in rights]
    s.draws([s.function], arms, s.nlts.Config(), s.rng(), laws=laws)
    return arms


@case("inverse_gamma_noise")
def inverse_gamma_noise(s):
    s.test("one nu2 for each arm, from its own a and b, independent of the others")
    noises(s, (0.3, 2.0, 20.0))

    s.test("five arms, and one")
    noises(s, (0.1, 1.0, 5.0, 0.5, 50.0))
    noises(s, (3.0,))

    s.test("the rng that is passed in decides, NumPy's global generator does not")
    s.repeats(s.function, [s.posterior(1, 3)[0], s.posterior(1, 9)[0]], s.nlts.Config())


@case(f"{POSTERIOR}.sample")
def posterior_sample(s):
    s.test("mean and covariance nu2 precision^-1")
    s.samples([s.posterior(3, 4)[0]], 9.0)

    s.test("a skew covariance, a small nu2")
    s.samples([s.arm([[50.0, 6.0], [6.0, 1.0]], [1.0, -1.0], 9.0, 2.0)], 0.04)

    s.test("two arms in turn, independent of each other; the arms stay as they are")
    arms = [s.posterior(3, n)[0] for n in (2, 9)]
    s.samples(arms, 1.0)
    s.same(*s.state(arms[0]), *s.state(arms[1]))

    s.test("the rng that is passed in decides, NumPy's global generator does not")
    s.repeats(s.posterior(3, 4)[0].sample, 2.0)


def sampled(s, scales, v=None):
    """An agent with an arm for each scale of noise, a context, and the distributions of scores."""
    context = s.normal(2)
    agent = s.nlts.LinearTS(2, len(scales), v=v, seed=s.integer())
    arms = [s.posterior(2, n + 1, b0)[0] for n, b0 in enumerate(scales)]
    agent.arms = arms
    return agent, context, s.scored(arms, context, v)


@case("LinearTS.scores")
def linearts_scores(s):
    s.test("each score has its distribution, and none depends on another")
    agent, context, laws = sampled(s, (0.5, 3.0, 30.0))
    s.draws([agent.scores], context, laws=laws)

    s.test("with v given the noise variance is v^2, also of two arms")
    agent, context, laws = sampled(s, (1.0, 9.0), 0.3)
    s.draws([agent.scores], context, laws=laws)

    s.test("self.rng decides, NumPy's global generator does not; nothing else is changed")
    seed, context, made = s.integer(), s.normal(2), []
    for global_seed in (1, 2):
        s.nlts.np.random.seed(global_seed)
        agent = s.nlts.LinearTS(2, 2, seed=seed)
        made.append(agent.scores(context))
    s.same(made[1], how="repeats", before=s.place(made[0]))
    s.same(agent.t, agent.chosen, *s.state(agent.arms[0]))


def first_pulls(s, pulls, chosen, seen):
    """The arm that an agent plays after some pulls. If samples decide, it is the arm `sure`."""
    agent, context = s.nlts.LinearTS(2, 3, initial_pulls=pulls), s.normal(2)
    sure = (pulls + 1) % 3
    agent.arms[sure].mu_hat = 1e4 * context / (context @ context)
    agent.chosen = np.roll(chosen, sure)
    for i, n in enumerate(np.roll(seen, sure)):
        agent.arms[i].n = int(n)
    s.same(agent.act(context))


@case("LinearTS.act")
def linearts_act(s):
    s.test("first the arm with the fewest pulls, until each has initial_pulls")
    for pulls, seen in ((0, (1, 0, 0)), (1, (1, 0, 0)), (1, (1, 1, 0)), (1, (2, 1, 1)),
                        (3, (3, 2, 2)), (3, (3, 3, 2)), (3, (4, 3, 3))):
        first_pulls(s, pulls, (0, 0, 0), seen)

    s.test("a pull counts when it is chosen, or when its reward comes, whichever is more")
    for chosen, seen in (((2, 0, 1), (0, 2, 0)), ((3, 0, 2), (0, 3, 1)), ((2, 2, 2), (3, 3, 2)),
                         ((4, 0, 3), (0, 3, 0))):
        first_pulls(s, 3, chosen, seen)

    s.test("chosen counts what is returned: the initial pulls take turns without any reward")
    agent = s.nlts.LinearTS(2, 3, initial_pulls=2)
    for _ in range(6):
        s.same(agent.act(s.normal(2)), agent.chosen)

    s.test("then the largest of self.scores(context), in the state that self.rng has then")
    for pulls, chosen in ((0, 0), (2, 9)):
        seed = s.integer()
        for n_arms in (2, 3, 3, 4, 4, 4):
            context = s.normal(2)
            agent, other = (s.nlts.LinearTS(2, n_arms, seed=seed, initial_pulls=pulls)
                            for _ in range(2))
            agent.chosen = np.full(n_arms, chosen)
            scores = other.scores(context)
            s.same(agent.act(context), how="largest", before=s.place(scores))
            s.same(agent.chosen.sum())


@case("LinearTS.update")
def linearts_update(s):
    s.test("the played arm learns, no other does")
    agent = s.nlts.LinearTS(3, 3)
    for arm in (1, 0, 1):
        agent.update(s.normal(3), arm, s.normal())
    for i in range(3):
        s.same(*s.state(agent.arms[i]))

    s.test("t goes on by one, chosen stays")
    agent = s.nlts.LinearTS(2, 2)
    for t in (0, 7):
        agent.t = t
        agent.update(s.normal(2), 1, 1.0)
        s.same(agent.t, agent.chosen)


# buffer -------------------------------------------------------------------------------------------

def add_five(s, buffer):
    for i in range(5):
        buffer.add(np.array([i, 1.0]), s.integer(0, 3), s.normal())
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
    buffer = s.buffer_of([1, 2, 0, 2, 1, 2], 6)
    buffer.add(s.normal(2), 4, s.normal())
    s.same(buffer.tuples)

    s.test("of several such arms, the lowest")
    buffer = s.buffer_of([2, 1, 2, 1], 4)
    buffer.add(s.normal(2), 0, s.normal())
    s.same(buffer.tuples)

    s.test("the tuple that is just stored stays, also in a buffer for one")
    buffer = s.buffer_of([1], 1)
    for arm in (1, 0):
        buffer.add(s.normal(2), arm, s.normal())
        s.same(buffer.tuples)

    s.test("the stored context is a copy")
    buffer, context = s.nlts.ReplayBuffer(3), s.nlts.np.array(s.normal(2))
    buffer.add(context, 1, 0.5)
    context.fill(7.0)
    s.same(buffer.tuples)


@case("ReplayBuffer.arrays")
def replaybuffer_arrays(s):
    s.test("contexts, arms and rewards of all tuples, oldest first")
    buffer = s.buffer_of([0, 2, 1, 2])
    s.same(buffer.arrays(), buffer.tuples)

    s.test("one tuple: arrays of length 1")
    s.same(s.buffer_of([3]).arrays())

    s.test("an empty buffer is a ValueError")
    s.refused(s.nlts.ReplayBuffer(4).arrays())


# invertible ---------------------------------------------------------------------------------------

def square(s, g, n=None):
    """Old features of rank g, and new ones that are linear in them."""
    E_old = s.normal(n or g, g) + 2 * np.eye(n or g, g)
    return E_old, E_old @ (s.normal(g, g) + 2 * np.eye(g)).T


@case("match_mean")
def match_mean(s):
    s.test("square and invertible: the same predictions under the new features")
    s.same(s.function(*square(s, 1), s.normal(1)), s.function(*square(s, 3), s.normal(3)),
           digits=1e-3)

    s.test("more tuples than features: least squares")
    s.same(s.function(s.normal(7, 3), s.normal(7, 3), s.normal(3)))

    s.test("fewer tuples than features: of many solutions the smallest")
    s.same(s.function(s.normal(2, 4), s.normal(2, 4), s.normal(4)))


def carried(s, *features):
    """invertible_prior of arms with these (E_old, E_new), and the arms afterwards."""
    forgotten = [s.posterior(E_old.shape[1], 4)[0] for E_old, _ in features]
    g = features[0][0].shape[1]
    found = s.function(forgotten, [E for E, _ in features], [E for _, E in features],
                       s.normal(len(features), g), 0.25)
    return found, forgotten


@case("invertible_prior")
def invertible_prior(s):
    s.test("the example by hand of the page: from feature 2 to feature 6")
    arm = s.arm([[4.0]], [1.5], 6.0, 6.0)
    s.same(s.function([arm], [np.array([[2.0]])], [np.array([[6.0]])], s.normal(1, 1), 0.25))

    s.test("square and invertible features: Eqs. 7 and 8")
    s.same(carried(s, square(s, 3))[0], digits=1e-3)

    s.test("two arms, each with its own; more tuples than features")
    s.same(carried(s, square(s, 2, 5), square(s, 2, 3))[0], digits=1e-3)

    s.test("forgotten is left as it is")
    found, forgotten = carried(s, square(s, 2))
    s.same(found, *s.state(forgotten[0]), digits=1e-3)

    s.test("rows of a rank below g are a ValueError")
    s.refused(carried(s, (s.normal(2, 3), s.normal(2, 3)))[0])


# matching -----------------------------------------------------------------------------------------

def best_fit(s, E, s2):
    s.same(s.function(E, s2), how="fits", E=E.tolist(), s2=s2.tolist())


@case("match_covariance_sdp")
def match_covariance_sdp(s):
    s.test("one dimension: the least squares of Eq. 6")
    best_fit(s, s.normal(1, 1), s.positive(1))

    s.test("as many tuples as features")
    best_fit(s, s.normal(3, 3), s.positive(3))

    s.test("more tuples than a covariance can match")
    best_fit(s, s.normal(12, 2), s.positive(12))

    s.test("S stays positive semidefinite where least squares alone would not")
    E = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])
    best_fit(s, E, np.array([1.0, 1.0, 4.0]) * s.positive(1))

    s.test("with rho and least: the one solution of a unique problem")
    s.same(s.function(s.normal(4, 3), s.positive(4), 0.1, 0.05), **MATCHED)
    s.same(s.function(s.normal(3, 2), 3 * s.positive(3), 2.0), **MATCHED)
    s.same(s.function(s.normal(3, 2), 0.05 * s.positive(3), rho=2.0, least=0.3), **MATCHED)


# limited ------------------------------------------------------------------------------------------

def matched(s, n_arms, g, rows=4, **options):
    """likelihood_matching of some arms; the first has `rows` tuples."""
    forgotten = [s.posterior(g, n + 3)[0] for n in range(n_arms)]
    E_old, E_new = [[s.normal(n + rows, g) for n in range(n_arms)] for _ in range(2)]
    return s.function(forgotten, E_old, E_new, s.normal(n_arms, g), 0.25, **options)


@case("likelihood_matching")
def likelihood_matching(s):
    s.test("one arm: s2 of what was forgotten, matched under the new features; the last layer")
    s.same(matched(s, 1, 3), digits=1e-3)

    s.test("three arms, each with its own")
    s.same(matched(s, 3, 2), digits=1e-3)

    s.test("another `match` than the default is used")
    s.same(matched(s, 2, 3, match=s.nlts.other_match), digits=1e-3)

    s.test("an arm without tuples, or without features, keeps its precision")
    s.same(matched(s, 2, 3, rows=0), digits=1e-3)
    arm, E, _ = s.posterior(2, 3)
    s.same(s.function([arm], [E], [0 * E], s.normal(1, 2), 0.25))


@case("NeuralLinearTS.phi")
def neurallinearts_phi(s):
    s.test("the features of a context, under the network as it is now")
    agent = s.network_agent(s.nlts.no_prior, 2)
    for _ in range(3):
        s.same(agent.phi(s.normal(3)))

    s.test("after a learning phase they are new")
    agent = s.network_agent(s.nlts.no_prior, 2)
    agent.train(agent.network, agent.buffer, agent.config, agent.rng)
    s.same(agent.phi(s.normal(3)))


@case("NeuralLinearTS.update")
def neurallinearts_update(s):
    s.test("the tuple goes to the buffer and to its arm")
    agent = s.network_agent(s.nlts.no_prior, 7, L=100)
    agent.update(s.normal(3), 1, 0.5)
    s.same(agent.t, agent.buffer.tuples, *s.state(agent.arms[0]), *s.state(agent.arms[1]))

    s.test("every L steps a learning phase")
    agent = s.network_agent(s.nlts.no_prior, 8, L=3)
    for _ in range(4):
        agent.update(s.normal(3), s.integer(0, 2), s.normal())
        s.same(agent.network.weights)


@case("NeuralLinearTS.learn")
def neurallinearts_learn(s):
    s.test("the network is trained on the buffer, by self.train; t and the buffer stay")
    agent = s.network_agent(s.nlts.no_prior)
    agent.learn()
    s.same(agent.network.weights, agent.network.input, agent.t, agent.buffer.tuples)

    for title, prior, names in (
            ("the last layer as mean: Phi0 and mu0 of every arm", "mean_prior", ("Phi0", "mu0")),
            ("likelihood matching: Phi0 and mu0 of every arm", "likelihood_matching",
             ("Phi0", "mu0")),
            ("a, b and n of every arm", "mean_prior", ("a", "b", "n")),
            ("Phi, f and mu_hat of every arm: the buffer is put back", "likelihood_matching",
             ("Phi", "f", "mu_hat"))):
        s.test(title)
        agent = s.network_agent(getattr(s.nlts, prior))
        agent.learn()
        for arm in (agent.arms[0], agent.arms[1]):
            s.same(*[getattr(arm, name) for name in names], digits=1e-3)


# prior --------------------------------------------------------------------------------------------

@case("better_prior")
def better_prior(s):
    for title, moved in (("features that did not move: one (Phi0, mu0) per arm, symmetric and "
                          "positive definite", 0.0), ("features that moved", 1.0)):
        s.test(title)
        forgotten = [s.posterior(3, 4)[0], s.posterior(3, 4)[0]]
        E_old = [s.normal(5, 3), s.normal(0, 3)]
        E_new = [E + moved * s.normal(*E.shape) for E in E_old]
        s.same(s.function(forgotten, E_old, E_new, s.normal(2, 3), 0.25), how="priors")
