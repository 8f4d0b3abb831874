"""The tests: scripts of calls for each function, drawn from a seed.

The reference runs a script in the grader's process and the student's code in its own; compare.py
judges. What a test asks for stands in the function's docstring in the handout. State that a
function needs is set from outside, so that each function is tested alone.
"""
import numpy as np

from .worker import encode

CLOSE, DRAWS = {"how": "close"}, {"how": "draws"}
STATE = ("Phi", "precision", "f", "mu_hat", "a", "R2", "b", "n")
LEFT = ("precision", "mu_hat", "a", "b", "n")


class Script:
    """Steps for a worker, test by test. Those with a "check" are compared; the rest is run."""

    def __init__(self, nlts, rng):
        self.nlts = nlts                         # the reference, to compute states with
        self.rng = rng
        self.tests = []
        self.count = 0

    def test(self, title):
        """Begin a test."""
        self.steps = []
        self.tests.append((title, self.steps))

    def let(self, value):
        """An input that can be looked at afterwards."""
        self.count += 1
        handle = f"x{self.count}"
        self.steps.append({"do": "let", "on": None, "as": handle, "value": encode(value)})
        return {"handle": handle}

    def call(self, on, what, *args, check=None, times=None, **kwargs):
        """Call a function (on=None) or a method of an object, perhaps many times."""
        self.count += 1
        short = {"BayesianLinearRegression": "arm", "ReplayBuffer": "buffer", "LinearTS": "agent",
                 "NeuralLinearTS": "agent", "MLP": "network"}
        handle = f"{short.get(what, what)}{self.count}".replace(".", "_")
        step = {"do": "call", "on": on and on["handle"], "what": what, "as": handle,
                "args": [encode(arg) for arg in args],
                "kwargs": {name: encode(arg) for name, arg in kwargs.items()}}
        if check:
            step["check"] = check
        if times:
            step["times"] = times
        self.steps.append(step)
        return {"handle": handle}

    def get(self, on, *names, **check):
        """Compare attributes, or the object itself by the name ""."""
        for name in names:
            self.steps.append({"do": "get", "on": on["handle"], "what": name,
                               "check": CLOSE | check})

    def set(self, on, **values):
        """Set attributes."""
        for name, value in values.items():
            self.steps.append({"do": "set", "on": on["handle"], "what": name,
                               "value": encode(value)})

    def seed(self):
        """A seed for a generator in the worker."""
        return int(self.rng.integers(2 ** 31))

    def normal(self, *shape):
        return self.rng.normal(size=shape)

    def posterior(self, g, n=0, b0=2.0):
        """An arm in the state that the reference has after n tuples, and the tuples."""
        root = self.normal(g, g)
        prior = root @ root.T + np.eye(g), self.normal(g), 3.0, b0
        E, r = self.normal(n, g), self.normal(n)
        arm = self.call(None, "BayesianLinearRegression", *prior)
        if n:
            right = self.nlts.BayesianLinearRegression(*prior)
            right.update(E, r)
            self.set(arm, **vars(right))
        return arm, E, r


# blr ----------------------------------------------------------------------------------------------

def update(s):
    s.test("one tuple in one dimension, as in the handout's example")
    arm = s.call(None, "BayesianLinearRegression", [[1.0]], [0.0], 6.0, 6.0)
    s.call(arm, "update", np.array([2.0]), float(s.rng.integers(1, 9)))
    s.get(arm, "Phi", "f", "precision", "mu_hat")
    for title, names in (("Phi, f and R2: sums over the tuples", ("Phi", "f", "R2")),
                         ("a and n: counts of the tuples", ("a", "n"))):
        s.test(title)
        arm, _, _ = s.posterior(3, 2)
        for _ in range(4):
            s.call(arm, "update", s.normal(3), s.rng.normal())
        s.get(arm, *names)
    s.test("mu_hat, with a prior mean that is not zero")
    arm, _, _ = s.posterior(4)
    for _ in range(3):
        s.call(arm, "update", s.normal(4), s.rng.normal())
        s.get(arm, "mu_hat")
    s.test("b, with the whole precision and the prior mean")
    arm, _, _ = s.posterior(3, 2)
    for _ in range(3):
        s.call(arm, "update", s.normal(3), 3 * s.rng.normal())
        s.get(arm, "b")
    for title, names in (("the mean", ("Phi", "f", "precision", "mu_hat")),
                         ("the noise", ("R2", "a", "b", "n"))):
        s.test(f"{title} with rows (n, g) at once, as one after the other")
        arm, _, _ = s.posterior(3)
        s.call(arm, "update", s.normal(5, 3), s.normal(5))
        s.get(arm, *names)


def variance(s):
    s.test("one dimension: phi^2 over the precision")
    arm = s.call(None, "BayesianLinearRegression", [[4.0]], [0.0], 6.0, 6.0)
    s.call(arm, "variance", s.normal(3, 1), check=CLOSE)
    s.test("each row, under a posterior with data")
    arm, _, _ = s.posterior(4, 6)
    s.call(arm, "variance", s.normal(5, 4), check=CLOSE)


def predict(s):
    s.test("mean, scale and degrees of freedom")
    for n in (0, 5):
        arm, _, _ = s.posterior(3, n)
        s.call(arm, "predict", s.normal(3), check=CLOSE)
    s.test("the scale depends on b and a")
    for b0 in (0.1, 10.0):
        arm, _, _ = s.posterior(2, 3, b0)
        s.call(arm, "predict", s.normal(2), check=CLOSE)


def without(s):
    s.test("precision, mu_hat, a, b and n of what is left")
    arm, E, r = s.posterior(3, 6)
    s.get(s.call(arm, "without", E[:2], r[:2]), *LEFT, rtol=1e-5)
    s.test("without all tuples it is the prior")
    arm, E, r = s.posterior(4, 7)
    s.get(s.call(arm, "without", E, r), *LEFT, rtol=1e-5)
    s.test("without no tuple nothing changes, and the arm itself never does")
    arm, _, _ = s.posterior(2, 3)
    s.get(s.call(arm, "without", np.zeros((0, 2)), np.zeros(0)), *LEFT, rtol=1e-5)
    s.get(arm, *STATE)


# thompson -----------------------------------------------------------------------------------------

def sample(s):
    s.test("a known noise variance is returned, and mu_tilde is drawn with it")
    for nu2 in (0.04, 9.0):
        arm, _, _ = s.posterior(2, 4)
        s.call(arm, "sample", {"rng": s.seed()}, nu2, times=1500, check=DRAWS)
    s.test("the covariance is the inverse of the precision, in a skew case")
    arm = s.call(None, "BayesianLinearRegression", [[50.0, 6.0], [6.0, 1.0]], [1.0, -1.0], 9.0, 2.0)
    s.call(arm, "sample", {"rng": s.seed()}, 1.0, times=1500, check=DRAWS)
    s.test("nu2 is inverse gamma, and mu_tilde goes with it")
    for b0 in (0.3, 20.0):
        arm, _, _ = s.posterior(2, 3, b0)
        s.call(arm, "sample", {"rng": s.seed()}, times=2000, check=DRAWS)


def linear_agent(s, n_arms, **options):
    """LinearTS in two dimensions whose arms have seen some tuples."""
    agent = s.call(None, "LinearTS", 2, n_arms, seed=s.seed(), **options)
    s.set(agent, arms=[s.posterior(2, 3, 0.5)[0] for _ in range(n_arms)], t=100)
    return agent


def linear_act(s):
    s.test("first every arm in turn, initial_pulls times")
    agent = s.call(None, "LinearTS", 2, 3, initial_pulls=2)
    for t in range(6):
        s.set(agent, t=t)
        s.call(agent, "act", s.normal(2), check=CLOSE)
    s.test("each arm as often as its sample is the best")
    for _ in range(2):
        s.call(linear_agent(s, 3), "act", s.normal(2), times=1000, check=DRAWS)
    s.test("with v given the noise variance is v^2")
    for v in (0.1, 3.0):
        s.call(linear_agent(s, 2, v=v), "act", s.normal(2), times=1000, check=DRAWS)


def linear_update(s):
    s.test("the played arm learns")
    agent = s.call(None, "LinearTS", 3, 2)
    for arm in (1, 0, 1):
        s.call(agent, "update", s.normal(3), arm, s.rng.normal())
    s.get(agent, *(f"arms.{i}.{name}" for i in (0, 1) for name in STATE))
    s.test("time goes on")
    agent = s.call(None, "LinearTS", 2, 2)
    s.call(agent, "update", s.normal(2), 1, 1.0)
    s.get(agent, "t")


# buffer -------------------------------------------------------------------------------------------

def filled(s, arms, capacity=None):
    """A buffer of tuples of these arms; the contexts count them."""
    buffer = s.call(None, "ReplayBuffer", capacity)
    s.set(buffer, tuples=[(np.array([float(i), -1.0]), arm, float(s.rng.normal()))
                          for i, arm in enumerate(arms)])
    return buffer


def add(s):
    s.test("below capacity everything is kept, in order of time")
    for capacity in (None, 5):
        buffer = s.call(None, "ReplayBuffer", capacity)
        for i in range(5):
            s.call(buffer, "add", np.array([i, 1.0]), int(s.rng.integers(3)), s.rng.normal())
        s.get(buffer, "tuples")
    s.test("a full buffer loses the first tuple of the same arm")
    buffer = filled(s, [0, 1, 0, 2, 1], 5)
    for arm in (1, 0, 0, 2, 1):
        s.call(buffer, "add", s.normal(2), arm, s.rng.normal())
        s.get(buffer, "tuples")
    s.test("if there is none, the first tuple of the arm that has most")
    buffer = filled(s, [2, 1, 0, 2, 1, 2], 6)
    s.call(buffer, "add", s.normal(2), 4, s.rng.normal())
    s.get(buffer, "tuples")
    s.test("of several such arms, the lowest")
    buffer = filled(s, [2, 1, 2, 1], 4)
    s.call(buffer, "add", s.normal(2), 0, s.rng.normal())
    s.get(buffer, "tuples")
    s.test("what is stored is a copy")
    buffer, context = s.call(None, "ReplayBuffer", 3), s.let(s.normal(2))
    s.call(buffer, "add", context, 1, 0.5)
    s.call(context, "fill", 7.0)
    s.get(buffer, "tuples")


def arrays(s):
    s.test("contexts, arms and rewards of all tuples, oldest first")
    s.call(filled(s, [0, 2, 1, 2]), "arrays", check=CLOSE)


def rows_of(s):
    s.test("contexts and rewards of one arm, oldest first")
    buffer = filled(s, [0, 2, 1, 2, 2])
    s.call(buffer, "rows_of", 2, check=CLOSE)
    s.call(buffer, "rows_of", 0, check=CLOSE)
    s.test("an arm without tuples has arrays of length 0")
    s.call(filled(s, [0, 2]), "rows_of", 1, check=CLOSE)


# invertible ---------------------------------------------------------------------------------------

def match_mean(s):
    s.test("square and invertible: the same predictions under the new features")
    for g in (1, 3):
        E_old, E_new = s.normal(2, g, g) + 2 * np.eye(g)
        s.call(None, "match_mean", E_old, E_new, s.normal(g), check=CLOSE)
    s.test("more tuples than features: least squares")
    s.call(None, "match_mean", s.normal(7, 3), s.normal(7, 3), s.normal(3), check=CLOSE)
    s.test("fewer tuples than features: of many solutions the smallest")
    s.call(None, "match_mean", s.normal(2, 4), s.normal(2, 4), s.normal(4), check=CLOSE)


def linear_features(s, g):
    """Old features, new ones that are linear in them, an old mean and precision."""
    E_old, A = s.normal(2, g, g) + 2 * np.eye(g)
    root = s.normal(g, g)
    return E_old, E_old @ A.T, s.normal(g), root @ root.T + np.eye(g)


def invertible_prior(s):
    loose = CLOSE | {"rtol": 1e-5, "atol": 1e-6}
    s.test("one dimension, as in the handout's example")
    new = float(s.rng.integers(3, 9))
    s.call(None, "invertible_prior", np.array([[2.0]]), np.array([[new]]), np.array([1.5]),
           np.array([[4.0]]), check=loose)
    s.test("square and invertible features: Eqs. 7 and 8")
    for _ in range(2):
        s.call(None, "invertible_prior", *linear_features(s, 3), check=loose)
    s.test("Phi_old is left as it is")
    *features, Phi_old = linear_features(s, 2)
    kept = s.let(Phi_old)
    s.call(None, "invertible_prior", *features, kept, check=loose)
    s.get(kept, "")


# matching -----------------------------------------------------------------------------------------

def covariance_sdp(s):
    for title, n, g in (("one dimension", 1, 1), ("as many tuples as features", 3, 3),
                        ("more tuples than a covariance can match", 12, 2)):
        s.test(f"{title}: the least squares of Eq. 6, without ridge and floor")
        E, s2 = s.normal(n, g), s.rng.uniform(0.2, 2, n)
        s.call(None, "match_covariance_sdp", E, s2,
               check={"how": "fit", "E": E.tolist(), "s2": s2.tolist()})
    s.test("with ridge and floor: the one solution of a unique problem")
    s.call(None, "match_covariance_sdp", s.normal(4, 3), s.rng.uniform(0.2, 2, 4), 0.1, 0.05,
           check=CLOSE | {"rtol": 2e-2, "atol": 1e-3})


def dual_point(s):
    """A point y, features, targets, ridge and floor; no eigenvalue near the floor."""
    while True:
        y, E, t = s.normal(4), s.normal(4, 3), s.rng.uniform(0.2, 2, 4)
        if np.abs(np.linalg.eigvalsh((E.T * y) @ E) - 0.05).min() > 0.05:
            return y, E, t, 0.1, 0.05


def dual(function):
    def write(s):
        s.test("one dimension, above the floor and below")
        for y in (1.5, -1.5):
            one = np.ones(1)
            s.call(None, function, y * one, np.ones((1, 1)), one, 0.5, 0.1, check=CLOSE)
        s.test("four tuples of three features")
        for _ in range(2):
            s.call(None, function, *dual_point(s), check=CLOSE | {"rtol": 1e-5})
    return write


def covariance(s):
    loose = CLOSE | {"rtol": 2e-2, "atol": 1e-3}
    s.test("the solution of the semidefinite program")
    s.call(None, "match_covariance", s.normal(4, 3), s.rng.uniform(0.2, 2, 4), 0.1, 0.05,
           check=loose)
    s.test("200 tuples of 20 features in time")
    s.call(None, "match_covariance", s.normal(200, 20), s.rng.uniform(0.2, 2, 200), check=loose)


# limited ------------------------------------------------------------------------------------------

def neural_agent(s, prior, tuples=12, **options):
    """Algorithm 2 after some tuples, each seen by the buffer and by its arm."""
    seed, contexts = s.seed(), s.normal(tuples, 3)
    network = s.call(None, "MLP", 3, 2, 4, seed=seed)
    agent = s.call(None, "NeuralLinearTS", network, 2, 6, {"name": prior}, seed=s.seed(),
                   **({"P": 3, "batch": 4, "lr": 0.05} | options))
    phi = s.nlts.last_layer_activations(s.nlts.MLP(3, 2, 4, seed=seed), contexts)
    for i in range(tuples):
        arm, reward = int(s.rng.integers(2)), s.rng.normal()
        s.call(agent, "buffer.add", contexts[i], arm, reward)
        s.call(agent, f"arms.{arm}.update", phi[i], reward)
    s.set(agent, t=tuples)
    return agent


def matching_prior(s):
    loose = CLOSE | {"rtol": 1e-4, "atol": 1e-6}
    s.test("one arm: s2 of what left the buffer, matched under the new features; the last layer")
    arm = s.posterior(3, 5)[0]
    s.call(None, "likelihood_matching", [arm], [s.normal(4, 3)], [s.normal(4, 3)], s.normal(1, 3),
           0.25, check=loose)
    s.test("three arms, each with its own")
    arms = [s.posterior(2, 3 + i)[0] for i in range(3)]
    E_old, E_new = ([s.normal(2 + i, 2) for i in range(3)] for _ in range(2))
    s.call(None, "likelihood_matching", arms, E_old, E_new, s.normal(3, 2), 0.25, check=loose)


def neural_act(s):
    s.test("first every arm in turn, initial_pulls times")
    agent = neural_agent(s, "no_prior", 4)
    for t in range(1, 4):
        s.set(agent, t=t)
        s.call(agent, "act", s.normal(3), check=CLOSE)
    s.test("each arm as often as its sample is the best")
    for _ in range(2):
        s.call(neural_agent(s, "no_prior", b0=0.5), "act", s.normal(3), times=600, check=DRAWS)


def neural_update(s):
    s.test("the tuple goes to the buffer and to its arm")
    agent = neural_agent(s, "no_prior", 7, L=100)
    s.call(agent, "update", s.normal(3), 1, 0.5)
    s.get(agent, "t", "buffer.tuples", *(f"arms.{i}.{name}" for i in (0, 1) for name in STATE))
    s.test("every L steps a learning phase")
    agent = neural_agent(s, "no_prior", 8, L=3)
    for _ in range(4):
        s.call(agent, "update", s.normal(3), int(s.rng.integers(2)), s.rng.normal())
        s.get(agent, "network.weights")


def neural_learn(s):
    for title, prior in (("the last layer as mean", "mean_prior"),
                         ("likelihood matching", "likelihood_matching")):
        for names in (("Phi0", "mu0"), ("a", "b", "n"), ("Phi", "f", "mu_hat")):
            s.test(f"{title}: {', '.join(names)} of every arm after a learning phase")
            agent = neural_agent(s, prior)
            s.call(agent, "learn")
            s.get(agent, *(f"arms.{i}.{name}" for i in (0, 1) for name in names), rtol=1e-4)
    s.test("the network is trained on the buffer")
    agent = neural_agent(s, "no_prior")
    s.call(agent, "learn")
    s.get(agent, "network.weights", "network.input")


def better_prior(s):
    for title, moved in (("features that did not move", 0.0), ("features that moved", 1.0)):
        s.test(f"{title}: one (Phi0, mu0) an arm, symmetric and positive definite")
        arms = [s.posterior(3, 4)[0] for _ in range(2)]
        E_old = [s.normal(5, 3), s.normal(0, 3)]
        E_new = [E + moved * s.normal(*E.shape) for E in E_old]
        s.call(None, "better_prior", arms, E_old, E_new, s.normal(2, 3), 0.25,
               check={"how": "priors"})


CASES = {
    "BayesianLinearRegression.update": update, "BayesianLinearRegression.variance": variance,
    "BayesianLinearRegression.predict": predict, "BayesianLinearRegression.without": without,
    "BayesianLinearRegression.sample": sample, "LinearTS.act": linear_act,
    "LinearTS.update": linear_update, "ReplayBuffer.add": add, "ReplayBuffer.arrays": arrays,
    "ReplayBuffer.rows_of": rows_of, "match_mean": match_mean,
    "invertible_prior": invertible_prior, "match_covariance_sdp": covariance_sdp,
    "dual_value": dual("dual_value"), "dual_gradient": dual("dual_gradient"),
    "newton_step": dual("newton_step"), "match_covariance": covariance,
    "likelihood_matching": matching_prior, "NeuralLinearTS.act": neural_act,
    "NeuralLinearTS.update": neural_update, "NeuralLinearTS.learn": neural_learn,
    "better_prior": better_prior,
}


def tests_of(function, nlts, seed):
    """[(title, steps)] of a function; the same seed gives the same tests."""
    script = Script(nlts, np.random.default_rng([seed, *function.encode()]))
    CASES[function](script)
    return script.tests
