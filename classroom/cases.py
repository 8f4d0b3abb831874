"""The tests of every function to write, by its marker. What a test asks for stands in the
function's docstring.

A case runs on the reference in the grader's process, and on the student's module in the
student's: `s.nlts` is the module, `s.test` says whether a test is to be played now, `s.tests` gives
what that one of several has, `s.call` calls what is tested, and `s.same` says what has to be the
same. Comparisons have a module of their own.
"""
import numpy as np

DRAWS = 10_000
STATE = ("Phi0", "mu0", "Phi", "precision", "root", "f", "R2", "mu_hat", "a", "b", "n")

# Objects ------------------------------------------------------------------------------------------

def integer(s, low=0, high=2 ** 31):
    return int(s.random.integers(low, high))


def scalar_arm(s, Phi0, mu0=0.0):
    """An arm with one feature that has seen nothing."""
    return s.nlts.BayesianLinearRegression([[Phi0]], [mu0], 6.0, 6.0)


def posterior(s, g, n=0, b0=2.0):
    """An arm with some prior that has seen n tuples, one after the other."""
    root = s.normal(g, g)
    arm = s.nlts.BayesianLinearRegression(root @ root.T + np.eye(g), s.normal(g), 3.0, b0)
    for _ in range(n):
        arm.update(s.normal(g), s.normal())
    return arm


def forgotten_arms(s, *features):
    """The arguments of a prior: arms that have forgotten tuples, with these (E_old, E_new)."""
    E_old, E_new = map(list, zip(*features, strict=True))
    g = E_old[0].shape[1]
    forgotten = [posterior(s, g, n + 3) for n in range(len(features))]
    return forgotten, E_old, E_new, s.normal(len(features), g), 0.25


def buffer_of(s, arms, capacity=None):
    """A buffer of tuples of these arms; the contexts count them."""
    buffer = s.nlts.ReplayBuffer(capacity)
    buffer.tuples = [(np.array([float(i), -1.0]), arm, s.normal()) for i, arm in enumerate(arms)]
    return buffer


def steady_train(network, buffer, config, rng):
    """Training without chance: P steps down the gradient of Eq. 3 on all tuples."""
    import torch
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"self.train: rng: expected a generator, got {type(rng).__name__}")
    contexts, arms, rewards = (torch.as_tensor(np.asarray(x)) for x in buffer.arrays())
    weights = list(network.parameters())
    for _ in range(config.P):                    # by hand: torch.optim takes a second to start
        played = network(contexts)[torch.arange(len(arms)), arms]
        slopes = torch.autograd.grad(((played - rewards) ** 2).mean(), weights)
        with torch.no_grad():
            for weight, slope in zip(weights, slopes, strict=True):
                weight -= config.lr * slope


def network_agent(s, prior, tuples=12, L=400):
    """Algorithm 2 after some tuples, each seen by the buffer and by its arm."""
    network, contexts = s.nlts.MLP(3, 2, 4, seed=integer(s)), s.normal(tuples, 3)
    agent = s.nlts.NeuralLinearTS(network, 2, 6, prior, steady_train, P=3, lr=0.05, L=L,
                                  seed=integer(s))
    phi = s.nlts.last_layer_activations(network, contexts)
    for i in range(tuples):
        arm, reward = i % 2 if i < 2 else integer(s, 0, 2), s.normal()
        agent.buffer.add(contexts[i], arm, reward)
        agent.arms[arm].update(phi[i], reward)
    agent.t = tuples
    return agent


# Kinds of tests -----------------------------------------------------------------------------------

def same_arms(s, arms, names=STATE, **options):
    """Compare what arms know. Of roots any is right: root root' is compared."""
    for i, arm in enumerate(arms):
        for name in names:
            value = getattr(arm, name)
            if name == "root":
                value = np.asarray(value, float) @ np.asarray(value, float).T
            s.same(value, f"{name} of arm {i}", **options)


def same_error(s, function, *args):
    """Compare the kind of error that a call raises."""
    try:
        s.call(function, *args)
        s.same("no error", "its error")
    except Exception as error:
        s.same(type(error).__name__, "its error")


def same_twice(s, draw):
    """Whether draw() is the same in two states of NumPy's global generator."""
    drawn = []
    for global_seed in (1, 2):
        np.random.seed(global_seed)
        drawn.append(np.asarray(draw()).tolist())
    s.same("the same" if drawn[0] == drawn[1] else "another", "the second of two draws")


def same_draws(s, functions, *args, **law):
    """Compare the distribution of results of functions in turn; a row holds those of a turn."""
    s.add(f"{DRAWS} calls")
    drawn = np.array([function(*args) for _ in range(DRAWS) for function in functions])
    s.same(drawn.reshape(DRAWS, -1), how="draws", **law)


# blr ----------------------------------------------------------------------------------------------

def blr_update(s):
    for names in s.tests({"Phi, f and R2: sums over the tuples": ("Phi", "f", "R2"),
                          "a and n: counts of the tuples": ("a", "n"),
                          "root, with root root' = precision^-1": ("root",),
                          "mu_hat, with a prior mean that is not zero": ("mu_hat",),
                          "b, with the whole precision and the prior mean": ("b",)}):
        arm = posterior(s, 3, 2)
        for size in (1, 3):
            s.call(arm.update, s.normal(3), size * s.normal())
            same_arms(s, [arm], names)

    if s.test("the example by hand of the page: phi = 2 and r = 3, then phi = 1 and r = 0"):
        arm = scalar_arm(s, 1.0)
        for phi, r in ((2.0, 3.0), (1.0, 0.0)):
            s.call(arm.update, np.array([phi]), r)
            same_arms(s, [arm])

    if s.test("rows (n, g) at once, as one after the other; Phi0 and mu0 stay"):
        arm = posterior(s, 3)
        s.call(arm.update, s.normal(5, 3), s.normal(5))
        same_arms(s, [arm])


def blr_s2(s):
    if s.test("one dimension: phi^2 over the precision"):
        s.same(s.call(scalar_arm(s, 4.0).s2, s.normal(3, 1)))

    if s.test("each row, under a posterior with data; the arm stays as it is"):
        arm = posterior(s, 4, 6)
        s.same(s.call(arm.s2, s.normal(5, 4)))
        same_arms(s, [arm])

    if s.test("no rows, and as many rows as features"):
        arm = posterior(s, 3, 4)
        for n in (0, 3):
            s.same(s.call(arm.s2, s.normal(n, 3)))


def blr_without(s):
    for g, n, out in s.tests({
            "precision, mu_hat, a, b and n of the tuples that are left": (3, 6, [2]),
            "without all tuples it is the prior": (4, 7, [7]),
            "without no tuple nothing changes, and the arm itself never does": (2, 3, [1, 0])}):
        E, r, arm = s.normal(n, g), s.normal(n), posterior(s, g)
        arm.update(E, r)
        for m in out:
            left = s.call(arm.without, E[:m], r[:m])
            same_arms(s, [left], ("precision", "mu_hat", "a", "b", "n"), digits=1e-3)
        same_arms(s, [arm])


# thompson -----------------------------------------------------------------------------------------

OWN_GENERATOR = "the rng that is passed in decides, NumPy's global generator does not"


def inverse_gamma_noise(s):
    noise, config = s.nlts.inverse_gamma_noise, s.nlts.Config()
    for scales in s.tests({
            "one nu2 for each arm, from its own a and b, independent of the others":
                (0.1, 1.0, 5.0, 0.5, 50.0),
            "also of one arm": (3.0,)}):
        arms = [posterior(s, 1, 3, b0) for b0 in scales]
        args = [[arm.a for arm in arms], 0.0, [arm.b for arm in arms]]
        same_draws(s, [noise], arms, config, s.random, law="invgamma", args=args)

    if s.test(OWN_GENERATOR):
        arms, seed = [posterior(s, 1, n) for n in (3, 9)], integer(s)
        same_twice(s, lambda: s.call(noise, arms, config, np.random.default_rng(seed)))


def blr_sample(s):
    from scipy.linalg import block_diag  # slow to import
    for seen, nu2 in s.tests({
            "mean and covariance nu2 precision^-1": ([0], 9.0),
            "two arms in turn, independent; the arms stay as they are": ([2, 9], 1.0)}):
        arms = [posterior(s, 3, n) for n in seen]
        mean = np.concatenate([arm.mu_hat for arm in arms])
        # the inverse of an arm's own root if it saw nothing: then rounded numbers show
        root = np.linalg.cholesky(block_diag(*[arm.precision for arm in arms]) / nu2)
        same_draws(s, [arm.sample for arm in arms], nu2, s.random, law="norm",
                   mean=mean.tolist(), root=root.tolist())
        same_arms(s, arms)

    if s.test(OWN_GENERATOR):
        arm, seed = posterior(s, 3, 4), integer(s)
        same_twice(s, lambda: s.call(arm.sample, 2.0, np.random.default_rng(seed)))


def linearts_scores(s):
    for scales, v in s.tests({
            "each score has its distribution, independent of the others": ((0.5, 3.0, 30.0), None),
            "with v given the noise variance is v^2, also of two arms": ((1.0, 9.0), 0.3)}):
        context = s.normal(2)
        agent = s.nlts.LinearTS(2, len(scales), v=v, seed=integer(s))
        arms = agent.arms = [posterior(s, 2, n + 1, b0) for n, b0 in enumerate(scales)]
        s2 = [context @ np.linalg.solve(arm.precision, context) for arm in arms]
        nu2 = [v ** 2 if v else arm.b / arm.a for arm in arms]
        args = [[context @ arm.mu_hat for arm in arms], np.sqrt(np.multiply(nu2, s2)).tolist()]
        if v is None:                                            # Student-t, or normal
            args.insert(0, [2 * arm.a for arm in arms])
        same_draws(s, [agent.scores], context, law="norm" if v else "t", args=args)

    if s.test("self.rng decides, NumPy's global generator does not; nothing else is changed"):
        seed, context, agent = integer(s), s.normal(2), s.nlts.LinearTS(2, 2)
        same_twice(s, lambda: s.call(s.nlts.LinearTS(2, 2, seed=seed).scores, context))
        s.call(agent.scores, context)
        s.same([agent.t, agent.chosen], "t and chosen")
        same_arms(s, agent.arms)


def linearts_act(s):
    none = (0, 0, 0)
    for pulled in s.tests({                      # initial_pulls, chosen, n of each arm
            "first the arm with the fewest pulls, until each has initial_pulls":
                ((0, none, (1, 0, 0)), (1, none, (1, 0, 0)), (1, none, (1, 1, 0)),
                 (1, none, (2, 1, 1)), (3, none, (3, 2, 2)), (3, none, (4, 3, 3))),
            "a pull counts when it is chosen, or when its reward comes, whichever is more":
                ((3, (2, 0, 1), (0, 2, 0)), (3, (3, 0, 2), (0, 3, 1)), (3, (2, 2, 2), (3, 3, 2)),
                 (3, (4, 0, 3), (0, 3, 0)))}):
        for pulls, chosen, seen in pulled:
            agent, context = s.nlts.LinearTS(2, 3, initial_pulls=pulls), s.normal(2)
            sure = (pulls + 1) % 3               # the arm that samples would choose
            agent.arms[sure].mu_hat = 1e4 * context / (context @ context)
            agent.chosen = np.roll(chosen, sure)
            for arm, n in zip(agent.arms, np.roll(seen, sure).tolist(), strict=True):
                arm.n = n
            s.same(s.call(agent.act, context))

    if s.test("chosen counts what is returned: the initial pulls take turns without any reward"):
        agent = s.nlts.LinearTS(2, 3, initial_pulls=2)
        for _ in range(6):
            s.same(s.call(agent.act, s.normal(2)))
            s.same(agent.chosen, "chosen")

    if s.test("then the largest of self.scores(context), in the state that self.rng has then"):
        for n_arms in (2, 3, 3, 4, 4, 4):
            context, seed = s.normal(2), integer(s)
            agent, other = (s.nlts.LinearTS(2, n_arms, seed=seed, initial_pulls=0)
                            for _ in range(2))
            best, played = np.argmax(other.scores(context)), s.call(agent.act, context)
            s.same("the largest" if played == best else "another", "the score that is played")
            s.same(agent.chosen.sum(), "chosen.sum()")


def linearts_update(s):
    if s.test("the played arm learns, no other does"):
        agent = s.nlts.LinearTS(3, 3)
        for arm in (1, 0, 1):
            s.call(agent.update, s.normal(3), arm, s.normal())
        same_arms(s, agent.arms)

    if s.test("t goes on by one, chosen stays"):
        agent = s.nlts.LinearTS(2, 2)
        for t in (0, 7):
            agent.t = t
            s.call(agent.update, s.normal(2), 1, 1.0)
            s.same([agent.t, agent.chosen], "t and chosen")


# buffer -------------------------------------------------------------------------------------------

def replaybuffer_add(s):
    for capacity, kept, added in s.tests({
            "below capacity everything is kept, in order of time": (5, (), (0, 2, 1, 0, 2)),
            "without a capacity, too": (None, (), (1, 0, 0, 2, 1)),
            "a full buffer loses the first tuple of the same arm":
                (5, (0, 1, 0, 2, 1), (1, 0, 0, 2, 1)),
            "if there is none, the first tuple of the arm that has most":
                (6, (1, 2, 0, 2, 1, 2), (4,)),
            "of several such arms, the lowest": (4, (2, 1, 2, 1), (0,)),
            "the tuple that is just stored stays, also in a buffer for one": (1, (1,), (1, 0))}):
        buffer = buffer_of(s, kept, capacity)
        for arm in added:
            s.call(buffer.add, s.normal(2), arm, s.normal())
            s.same(buffer.tuples, "tuples")

    if s.test("the stored context is a copy"):
        buffer, context = s.nlts.ReplayBuffer(3), s.normal(2)
        s.call(buffer.add, context, 1, 0.5)
        context.fill(7.0)
        s.same(buffer.tuples, "tuples")


def replaybuffer_arrays(s):
    for arms in s.tests({"contexts, arms and rewards of all tuples, oldest first": [0, 2, 1, 2],
                         "one tuple: arrays of length 1": [3]}):
        buffer = buffer_of(s, arms)
        s.same(s.call(buffer.arrays))
        s.same(buffer.tuples, "tuples")

    if s.test("an empty buffer is a ValueError"):
        same_error(s, s.nlts.ReplayBuffer(4).arrays)


# invertible ---------------------------------------------------------------------------------------

def square(s, g, n=None):
    """Old features of rank g, and new ones that are linear in them."""
    E_old = s.normal(n or g, g) + 2 * np.eye(n or g, g)
    return E_old, E_old @ (s.normal(g, g) + 2 * np.eye(g)).T


def match_mean(s):
    if s.test("square and invertible: the same predictions under the new features"):
        for g in (1, 3):
            s.same(s.call(s.nlts.match_mean, *square(s, g), s.normal(g)), digits=1e-3)

    for n, g in s.tests({"more tuples than features: least squares": (7, 3),
                         "fewer tuples than features: of many solutions the smallest": (2, 4)}):
        E_old, E_new = s.normal(2, n, g)
        s.same(s.call(s.nlts.match_mean, E_old, E_new, s.normal(g)))


def invertible_prior(s):
    prior = s.nlts.invertible_prior
    if s.test("the example by hand of the page: from feature 2 to feature 6"):
        E_old, E_new = np.array([[2.0]]), np.array([[6.0]])
        s.same(s.call(prior, [scalar_arm(s, 4.0, 1.5)], [E_old], [E_new], s.normal(1, 1), 0.25))

    for g, numbers in s.tests({
            "square and invertible features: Eqs. 7 and 8; forgotten is left as it is": (3, [3]),
            "two arms, each with its own; more tuples than features": (2, [5, 3])}):
        forgotten, *others = forgotten_arms(s, *[square(s, g, n) for n in numbers])
        s.same(s.call(prior, forgotten, *others), digits=1e-3)
        same_arms(s, forgotten, digits=1e-3)

    if s.test("rows of a rank below g are a ValueError"):
        same_error(s, prior, *forgotten_arms(s, s.normal(2, 2, 3)))


# matching -----------------------------------------------------------------------------------------

def match_covariance_sdp(s):
    matched, uniform = s.nlts.match_covariance_sdp, s.random.uniform
    indefinite = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]]), np.array([1.0, 1.0, 4.0])
    for E, s2 in s.tests({
            "one dimension: the least squares of Eq. 6": (s.normal(1, 1), uniform(0.2, 2, 1)),
            "as many tuples as features": (s.normal(3, 3), uniform(0.2, 2, 3)),
            "more tuples than a covariance can match": (s.normal(12, 2), uniform(0.2, 2, 12)),
            "S stays positive semidefinite where least squares alone would not": indefinite}):
        s.same(s.call(matched, E, s2), how="fits", E=E.tolist(), s2=s2.tolist())

    if s.test("with rho and least: the one solution of a unique problem"):
        for n, g, size, options in ((4, 3, 1.0, {"rho": 0.1, "least": 0.05}),
                                    (3, 2, 3.0, {"rho": 2.0}),
                                    (3, 2, 0.05, {"rho": 2.0, "least": 0.3})):
            E, s2 = s.normal(n, g), size * uniform(0.2, 2, n)
            s.same(s.call(matched, E, s2, **options), digits=2e-2)


# limited ------------------------------------------------------------------------------------------

def other_match(E_new, s2, **_):
    """A covariance for tests that pass `match`: no solution of Eq. 6."""
    return (1 + s2.sum()) * np.eye(E_new.shape[1]) + E_new.T @ E_new


def likelihood_matching(s):
    for g, numbers, options in s.tests({
            "one arm: s2 of what was forgotten, matched under the new features; the last layer":
                (3, (4,), {}),
            "three arms, each with its own": (2, (4, 5, 6), {}),
            "another `match` than the default is used": (3, (4, 5), {"match": other_match}),
            "an arm without tuples, or without features, keeps its precision": (3, (0, 1), {})}):
        moved = [s.normal(2, n, g) for n in numbers]
        if 0 in numbers:
            moved.append(moved[1] * np.reshape([1, 0], (2, 1, 1)))
        s.same(s.call(s.nlts.likelihood_matching, *forgotten_arms(s, *moved), **options),
               digits=1e-3)


def neurallinearts_phi(s):
    for learned in s.tests({"the features of a context, under the network as it is now": False,
                            "after a learning phase they are new": True}):
        agent = network_agent(s, s.nlts.no_prior, 2)
        if learned:
            agent.train(agent.network, agent.buffer, agent.config, agent.rng)
        for _ in range(3):
            s.same(s.call(agent.phi, s.normal(3)))


def neurallinearts_update(s):
    if s.test("the tuple goes to the buffer and to its arm"):
        agent = network_agent(s, s.nlts.no_prior, 7)
        s.call(agent.update, s.normal(3), 1, 0.5)
        s.same([agent.t, agent.buffer.tuples], "t and the buffer")
        same_arms(s, agent.arms)

    if s.test("every L steps a learning phase"):
        agent = network_agent(s, s.nlts.no_prior, 8, L=3)
        for _ in range(4):
            s.call(agent.update, s.normal(3), integer(s, 0, 2), s.normal())
            s.same(agent.network.weights, "network.weights")


def neurallinearts_learn(s):
    if s.test("the network is trained on the buffer, by self.train; t and the buffer stay"):
        agent = network_agent(s, s.nlts.no_prior)
        s.call(agent.learn)
        s.same([agent.network.weights, agent.network.input], "weights and input of the network")
        s.same([agent.t, agent.buffer.tuples], "t and the buffer")

    for prior, names in s.tests({
            "the last layer as mean: Phi0 and mu0 of every arm": ("mean_prior", ("Phi0", "mu0")),
            "likelihood matching: Phi0 and mu0 of every arm":
                ("likelihood_matching", ("Phi0", "mu0")),
            "a, b and n of every arm": ("mean_prior", ("a", "b", "n")),
            "Phi, f and mu_hat of every arm: the buffer is put back":
                ("likelihood_matching", ("Phi", "f", "mu_hat"))}):
        agent = network_agent(s, getattr(s.nlts, prior))
        s.call(agent.learn)
        same_arms(s, agent.arms, names, digits=1e-3)


# prior --------------------------------------------------------------------------------------------

def better_prior(s):
    for moved in s.tests({
            "features that did not move: one (Phi0, mu0) per arm, symmetric and positive definite":
                0.0,
            "features that moved": 1.0}):
        old = [s.normal(n, 3) for n in (5, 0)]
        features = [(E, E + moved * s.normal(*E.shape)) for E in old]
        s.same(s.call(s.nlts.better_prior, *forgotten_arms(s, *features)), how="priors")


def play_prior(s):
    """A call in the arena: the arguments come from an agent of the grader's."""
    arms, E_old, E_new, weights, lam = s.told
    forgotten = [s.nlts.BayesianLinearRegression(*arm) for arm in arms]
    E_old, E_new = ([np.reshape(E, (-1, len(weights[0]))) for E in rows] for rows in (E_old, E_new))
    s.same(s.nlts.better_prior(forgotten, E_old, E_new, np.array(weights), lam))


# hunts --------------------------------------------------------------------------------------------

def run_pytest(s):
    """A student's own test, run on a program that imports pytest."""
    s.same(s.nlts.pytest.main(s.told))
