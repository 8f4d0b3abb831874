"""The tests of every function to write, by its marker. What a test asks for stands in the
function's docstring.

A test is written as if it ran in the student's process: `s.test` begins it, `s.nlts` is the
student's module, numbers come from `s`, and `s.same` says what is compared with the reference.
"""
import numpy as np

# blr ----------------------------------------------------------------------------------------------

def blr_update(s):
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


def blr_s2(s):
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


def blr_without(s):
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

def inverse_gamma_noise(s):
    for title, *classes in (
            ("one nu2 for each arm, from its own a and b, independent of the others",
             (0.3, 2.0, 20.0)),
            ("five arms, and one", (0.1, 1.0, 5.0, 0.5, 50.0), (3.0,))):
        s.test(title)
        for scales in classes:
            arms = [s.posterior(1, 3, b0)[0] for b0 in scales]
            rights = [s.right[arm._path] for arm in arms]
            args = [[right.a for right in rights], 0.0, [right.b for right in rights]]
            s.draws([s.function], arms, s.nlts.Config(), s.rng(), law="invgamma", args=args)

    s.test("the rng that is passed in decides, NumPy's global generator does not")
    arms, seed = [s.posterior(1, n)[0] for n in (3, 9)], s.integer()
    s.twice(lambda: s.function(arms, s.nlts.Config(), s.rng(seed)))


def blr_sample(s):
    s.test("mean and covariance nu2 precision^-1")
    s.samples([s.posterior(3, 4)[0]], 9.0)

    s.test("a skew covariance, a small nu2")
    s.samples([s.arm([[50.0, 6.0], [6.0, 1.0]], [1.0, -1.0], 9.0, 2.0)], 0.04)

    s.test("two arms in turn, independent of each other; the arms stay as they are")
    arms = [s.posterior(3, n)[0] for n in (2, 9)]
    s.samples(arms, 1.0)
    s.same(*s.state(arms[0]), *s.state(arms[1]))

    s.test("the rng that is passed in decides, NumPy's global generator does not")
    arm, seed = s.posterior(3, 4)[0], s.integer()
    s.twice(lambda: arm.sample(2.0, s.rng(seed)))


def scored(s, scales, v=None):
    """Compare the scores of an agent with an arm for each scale of noise: their distributions are
    Student-t, or normal with v."""
    context = s.normal(2)
    agent = s.nlts.LinearTS(2, len(scales), v=v, seed=s.integer())
    arms = agent.arms = [s.posterior(2, n + 1, b0)[0] for n, b0 in enumerate(scales)]
    rights = [s.right[arm._path] for arm in arms]
    nu2 = [v ** 2 if v else right.b / right.a for right in rights]
    args = [[context @ right.mu_hat for right in rights],
            [np.sqrt(nu2_i * right.s2(context[None])[0])
             for nu2_i, right in zip(nu2, rights, strict=True)]]
    if v is None:
        args.insert(0, [2 * right.a for right in rights])
    s.draws([agent.scores], context, law="norm" if v else "t", args=args)


def linearts_scores(s):
    s.test("each score has its distribution, and none depends on another")
    scored(s, (0.5, 3.0, 30.0))

    s.test("with v given the noise variance is v^2, also of two arms")
    scored(s, (1.0, 9.0), 0.3)

    s.test("self.rng decides, NumPy's global generator does not; nothing else is changed")
    seed, context, agent = s.integer(), s.normal(2), s.nlts.LinearTS(2, 2)
    s.twice(lambda: s.nlts.LinearTS(2, 2, seed=seed).scores(context))
    agent.scores(context)
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

def replaybuffer_add(s):
    for title, capacity, kept, added in (
            ("below capacity everything is kept, in order of time", 5, (), (0, 2, 1, 0, 2)),
            ("without a capacity, too", None, (), (1, 0, 0, 2, 1)),
            ("a full buffer loses the first tuple of the same arm", 5, (0, 1, 0, 2, 1),
             (1, 0, 0, 2, 1)),
            ("if there is none, the first tuple of the arm that has most", 6, (1, 2, 0, 2, 1, 2),
             (4,)),
            ("of several such arms, the lowest", 4, (2, 1, 2, 1), (0,)),
            ("the tuple that is just stored stays, also in a buffer for one", 1, (1,), (1, 0))):
        s.test(title)
        buffer = s.buffer_of(kept, capacity)
        for arm in added:
            buffer.add(s.normal(2), arm, s.normal())
            s.same(buffer.tuples)

    s.test("the stored context is a copy")
    buffer, context = s.nlts.ReplayBuffer(3), s.nlts.np.array(s.normal(2))
    buffer.add(context, 1, 0.5)
    context.fill(7.0)
    s.same(buffer.tuples)


def replaybuffer_arrays(s):
    s.test("contexts, arms and rewards of all tuples, oldest first")
    buffer = s.buffer_of([0, 2, 1, 2])
    s.same(buffer.arrays(), buffer.tuples)

    s.test("one tuple: arrays of length 1")
    s.same(s.buffer_of([3]).arrays())

    s.test("an empty buffer is a ValueError")
    s.same(s.nlts.error_of(s.nlts.ReplayBuffer(4).arrays))


# invertible ---------------------------------------------------------------------------------------

def square(s, g, n=None):
    """Old features of rank g, and new ones that are linear in them."""
    E_old = s.normal(n or g, g) + 2 * np.eye(n or g, g)
    return E_old, E_old @ (s.normal(g, g) + 2 * np.eye(g)).T


def match_mean(s):
    s.test("square and invertible: the same predictions under the new features")
    s.same(s.function(*square(s, 1), s.normal(1)), s.function(*square(s, 3), s.normal(3)),
           digits=1e-3)

    s.test("more tuples than features: least squares")
    s.same(s.function(s.normal(7, 3), s.normal(7, 3), s.normal(3)))

    s.test("fewer tuples than features: of many solutions the smallest")
    s.same(s.function(s.normal(2, 4), s.normal(2, 4), s.normal(4)))


def arguments(s, *features):
    """The arguments of a prior: arms that have forgotten tuples, with these (E_old, E_new)."""
    E_old, E_new = zip(*features, strict=True)
    g = E_old[0].shape[1]
    forgotten = [s.posterior(g, n + 3)[0] for n in range(len(features))]
    return forgotten, E_old, E_new, s.normal(len(features), g), 0.25


def invertible_prior(s):
    s.test("the example by hand of the page: from feature 2 to feature 6")
    arm = s.arm([[4.0]], [1.5], 6.0, 6.0)
    s.same(s.function([arm], [np.array([[2.0]])], [np.array([[6.0]])], s.normal(1, 1), 0.25))

    s.test("square and invertible features: Eqs. 7 and 8")
    s.same(s.function(*arguments(s, square(s, 3))), digits=1e-3)

    s.test("two arms, each with its own; more tuples than features")
    s.same(s.function(*arguments(s, square(s, 2, 5), square(s, 2, 3))), digits=1e-3)

    s.test("forgotten is left as it is")
    given = arguments(s, square(s, 2))
    s.same(s.function(*given), *s.state(given[0][0]), digits=1e-3)

    s.test("rows of a rank below g are a ValueError")
    s.same(s.nlts.error_of(s.function, *arguments(s, (s.normal(2, 3), s.normal(2, 3)))))


# matching -----------------------------------------------------------------------------------------

def match_covariance_sdp(s):
    for title, E, s2 in (
            ("one dimension: the least squares of Eq. 6", s.normal(1, 1), s.positive(1)),
            ("as many tuples as features", s.normal(3, 3), s.positive(3)),
            ("more tuples than a covariance can match", s.normal(12, 2), s.positive(12)),
            ("S stays positive semidefinite where least squares alone would not",
             np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]]),
             np.array([1.0, 1.0, 4.0]) * s.positive(1))):
        s.test(title)
        s.same(s.function(E, s2), how="fits", E=E.tolist(), s2=s2.tolist())

    s.test("with rho and least: the one solution of a unique problem")
    s.same(s.function(s.normal(4, 3), s.positive(4), 0.1, 0.05),
           s.function(s.normal(3, 2), 3 * s.positive(3), 2.0),
           s.function(s.normal(3, 2), 0.05 * s.positive(3), rho=2.0, least=0.3), digits=2e-2)


# limited ------------------------------------------------------------------------------------------

def likelihood_matching(s):
    def moved(g, *numbers):
        return arguments(s, *[(s.normal(n, g), s.normal(n, g)) for n in numbers])

    s.test("one arm: s2 of what was forgotten, matched under the new features; the last layer")
    s.same(s.function(*moved(3, 4)), digits=1e-3)

    s.test("three arms, each with its own")
    s.same(s.function(*moved(2, 4, 5, 6)), digits=1e-3)

    s.test("another `match` than the default is used")
    s.same(s.function(*moved(3, 4, 5), match=s.nlts.other_match), digits=1e-3)

    s.test("an arm without tuples, or without features, keeps its precision")
    s.same(s.function(*moved(3, 0, 1)), digits=1e-3)
    E = s.normal(3, 2)
    s.same(s.function(*arguments(s, (E, 0 * E))))


def neurallinearts_phi(s):
    s.test("the features of a context, under the network as it is now")
    agent = s.network_agent(s.nlts.no_prior, 2)
    for _ in range(3):
        s.same(agent.phi(s.normal(3)))

    s.test("after a learning phase they are new")
    agent = s.network_agent(s.nlts.no_prior, 2)
    agent.train(agent.network, agent.buffer, agent.config, agent.rng)
    s.same(agent.phi(s.normal(3)))


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

def better_prior(s):
    for title, moved in (("features that did not move: one (Phi0, mu0) per arm, symmetric and "
                          "positive definite", 0.0), ("features that moved", 1.0)):
        s.test(title)
        features = [(E, E + moved * s.normal(*E.shape)) for E in (s.normal(5, 3), s.normal(0, 3))]
        s.same(s.function(*arguments(s, *features)), how="priors")
