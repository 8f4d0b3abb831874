"""Tests as scripts of calls: recorded as steps for a worker, run once by the reference."""
import numpy as np
from scipy.linalg import block_diag

from . import cases
from .catalogue import marker_of
from .worker import Interpreter, encode

SHORT = {"BayesianLinearRegression": "arm", "LinearTS": "agent", "NeuralLinearTS": "agent",
         "default_rng": "rng"}
STATE = ("Phi", "precision", "f", "mu_hat", "a", "R2", "b", "n")
DRAWS = 10_000


class RemoteRef:
    """What has this name in the student's process. To call it or to set an attribute is a step."""

    def __init__(self, steps, path):
        self.__dict__.update(_steps=steps, _path=path)

    def __getattr__(self, name):
        return RemoteRef(self._steps, f"{self._path}.{name}" if self._path else name)

    def __getitem__(self, index):
        return RemoteRef(self._steps, f"{self._path}.{index}")

    def __setattr__(self, name, value):
        self._steps.append({"path": f"{self._path}.{name}", "value": coded(value)})

    def __call__(self, *args, **kwargs):
        what = self._path.rpartition(".")[2]
        handle = f"{SHORT.get(what, what.lower())}{len(self._steps)}"
        keywords = {name: coded(value) for name, value in kwargs.items()}
        self._steps.append({"path": self._path, "as": handle, "args": coded(args),
                            "kwargs": keywords})
        return RemoteRef(self._steps, handle)


def coded(value):
    """An argument as the pipe takes it."""
    if isinstance(value, RemoteRef):
        return {"name": value._path}
    if isinstance(value, (list, tuple)):
        return [coded(item) for item in value]
    if isinstance(value, np.ndarray):
        return {"array": value.ravel().tolist(), "shape": value.shape}
    return encode(value)


class Script:
    """The tests of a function: the steps of each, and what is compared.

    nlts      the student's module: to call what is in it is a step
    function  the function that is tested, in it
    random    a generator, drawn from the seed of the grading
    """

    def __init__(self, function, reference, random):
        self.name, self.reference, self.random = function, reference, random
        self.tests = []                          # (title, steps, {step: what is compared})

    def test(self, title):
        """Begin a test."""
        self.steps, self.checks = [], {}
        self.right = {}                          # {path of an arm: the reference's posterior}
        self.nlts, self.function = RemoteRef(self.steps, ""), RemoteRef(self.steps, self.name)
        self.tests.append((title, self.steps, self.checks))

    # numbers

    def normal(self, *shape):
        return self.random.normal(size=shape or None)

    def integer(self, low=0, high=2 ** 31):
        return int(self.random.integers(low, high))

    def positive(self, n):
        return self.random.uniform(0.2, 2, n)

    def rng(self, seed=None):
        """A generator in the student's process."""
        return self.nlts.np.random.default_rng(self.integer() if seed is None else seed)

    # objects in a state that the reference computes, so that each function is tested alone

    def arm(self, *prior, E=(), r=()):
        """An arm with this prior that has seen these tuples."""
        arm = self.nlts.BayesianLinearRegression(*prior)
        right = self.right[arm._path] = self.reference.BayesianLinearRegression(*prior)
        if len(E):
            right.update(E, r)
            for name, value in vars(right).items():
                setattr(arm, name, value)
        return arm

    def posterior(self, g, n=0, b0=2.0):
        """An arm that has seen n tuples, and the tuples: arm, E, r."""
        root, E, r = self.normal(g, g), self.normal(n, g), self.normal(n)
        return self.arm(root @ root.T + np.eye(g), self.normal(g), 3.0, b0, E=E, r=r), E, r

    def state(self, arm):
        return [getattr(arm, name) for name in STATE]

    def buffer_of(self, arms, capacity=None):
        """A buffer of tuples of these arms; the contexts count them."""
        buffer = self.nlts.ReplayBuffer(capacity)
        buffer.tuples = [(np.array([float(i), -1.0]), arm, self.normal())
                         for i, arm in enumerate(arms)]
        return buffer

    def network_agent(self, prior, tuples=12, **options):
        """Algorithm 2 after some tuples, each seen by the buffer and by its arm; training draws
        no random number."""
        nlts, seed, contexts = self.nlts, self.integer(), self.normal(tuples, 3)
        network = nlts.MLP(3, 2, 4, seed=seed)
        options = {"P": 3, "lr": 0.05, "seed": self.integer(), "train": nlts.steady_train} | options
        agent = nlts.NeuralLinearTS(network, 2, 6, prior, **options)
        right = self.reference.MLP(3, 2, 4, seed=seed)
        phi = self.reference.last_layer_activations(right, contexts)
        for i in range(tuples):
            arm, reward = i % 2 if i < 2 else self.integer(0, 2), self.normal()
            agent.buffer.add(contexts[i], arm, reward)
            agent.arms[arm].update(phi[i], reward)
        agent.t = tuples
        return agent

    # what is compared

    def place(self, name):
        """The step whose result has this name; to look at an attribute is one, too."""
        made = [step.get("as") for step in self.steps]
        if name._path not in made:
            made.append(name._path)
            self.steps.append({"path": name._path})
        return made.index(name._path)

    def same(self, *names, how="close", **options):
        """Compare results of calls, or attributes."""
        for name in names:
            self.checks[self.place(name)] = {"how": how} | options

    def twice(self, draw):
        """draw() two times, which has to be the same: NumPy's global generator does not matter."""
        made = []
        for global_seed in (1, 2):
            self.nlts.np.random.seed(global_seed)
            made.append(draw())
        self.same(made[1], before=self.place(made[0]), digits=0.0)

    def draws(self, functions, *args, **law):
        """Compare many results of functions in turn; a row holds those of a turn."""
        self.same(self.nlts.many(DRAWS, functions, *args), how="draws", times=DRAWS, **law)

    def samples(self, arms, nu2):
        """Compare draws of arm.sample with the normal distributions of the arms."""
        rights = [self.right[arm._path] for arm in arms]
        precision = block_diag(*[right.precision for right in rights]) / nu2
        mean = np.concatenate([right.mu_hat for right in rights])
        self.draws([arm.sample for arm in arms], nu2, self.rng(), law="norm", mean=mean.tolist(),
                   root=np.linalg.cholesky(precision).tolist())


def build_tests(function, reference, seed):
    """[(title, steps, answers)] of a function, as in testing.py; the same seed, the same tests."""
    script = Script(function, reference, np.random.default_rng([seed, *function.encode()]))
    getattr(cases, marker_of(function))(script)
    tests = []
    for title, steps, checks in script.tests:
        reply = Interpreter(reference).run(steps)
        if "failed" in reply:
            raise ValueError(f"{function}, {title}: the reference fails: {reply['failed']}")
        answers = [None] * len(steps)
        for i, check in checks.items():
            answers[i] = {"right": reply["results"][i], **check}
            if "times" in check:                 # means and standard deviations are for reports
                rows = np.array(reply["results"][i])
                answers[i]["right"] = [rows.mean(0).tolist(), rows.std(0).tolist()]
        tests.append((title, steps, answers))
    return tests
