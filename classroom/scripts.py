"""Tests as scripts of calls: recorded as steps for a worker, run once by the reference."""
import numpy as np

from .worker import Interpreter, decode, encode

SHORT = {"BayesianLinearRegression": "arm", "LinearTS": "agent", "NeuralLinearTS": "agent",
         "default_rng": "rng"}
STATE = ("Phi", "precision", "f", "mu_hat", "a", "R2", "b", "n")
DRAWS, FEW = 10_000, 1_000                       # of a student, of the reference
CASES = {}                                       # {function: what makes its tests}, of cases.py


def case(*functions):
    """A function of a Script that makes the tests of each of these."""
    def register(build):
        CASES.update(dict.fromkeys(functions, build))
        return build
    return register


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
        phi = self.features(seed, contexts)
        for i in range(tuples):
            arm, reward = i % 2 if i < 2 else self.integer(0, 2), self.normal()
            agent.buffer.add(contexts[i], arm, reward)
            agent.arms[arm].update(phi[i], reward)
        agent.t = tuples
        return agent

    def features(self, seed, contexts):
        """The features of `network_agent`."""
        network = self.reference.MLP(3, 2, 4, seed=seed)
        return self.reference.last_layer_activations(network, contexts)

    # what is compared

    def same(self, *names, how="close", **options):
        """Compare results of calls, or attributes."""
        for name in names:
            made = [step.get("as") for step in self.steps]
            if name._path not in made:
                made.append(name._path)
                self.steps.append({"path": name._path})
            self.checks[made.index(name._path)] = {"how": how} | options

    def refused(self, call):
        """Compare the error of the last call: it has to be a ValueError."""
        self.same(call, how="raises")
        self.steps[-1]["raises"] = True

    def repeats(self, call, *args):
        """The generator that is passed in decides, and NumPy's global one does not. `call` gets
        two generators in the same state, one after the other."""
        seed, made = self.integer(), []
        for global_seed in (1, 2):
            self.nlts.np.random.seed(global_seed)
            made.append(call(*args, self.rng(seed)))
        self.same(made[1], how="repeats", before=self.place(made[0]))

    def place(self, name):
        return [step.get("as") for step in self.steps].index(name._path)

    def draws(self, calls, *args, how="draws", **options):
        """Compare many results; of several functions in turn, a row holds those of a turn."""
        first, *others = calls
        self.same(first(*args), how=how, times=DRAWS, **options)
        self.steps[-1] |= {"times": DRAWS, "also": [call._path for call in others]}

    def samples(self, arms, nu2):
        """Compare draws of arm.sample with the normal distributions of the arms."""
        rights = [self.right[arm._path] for arm in arms]
        laws = [{"law": "normal", "mean": right.mu_hat.tolist(), "nu2": nu2,
                 "precision": right.precision.tolist()} for right in rights]
        self.draws([arm.sample for arm in arms], nu2, self.rng(), laws=laws)

    def scored(self, arms, phi, v=None):
        """The distribution of phi'mu_tilde of each arm: Student-t, or normal with v."""
        laws = []
        for arm in (self.right[arm._path] for arm in arms):
            s2 = phi @ np.linalg.solve(arm.precision, phi)
            scale = np.sqrt(s2 * (arm.b / arm.a if v is None else v ** 2))
            laws.append({"law": "t", "mean": float(phi @ arm.mu_hat), "scale": float(scale),
                         "df": 2 * arm.a if v is None else None})
        return laws


def build_tests(function, reference, seed):
    """[(title, steps, answers)] of a function, as in testing.py; the same seed, the same tests."""
    from . import cases  # noqa: F401  it fills CASES
    script = Script(function, reference, np.random.default_rng([seed, *function.encode()]))
    CASES[function](script)
    tests = []
    for title, steps, checks in script.tests:
        few = [step | {"times": FEW} if "times" in step else step for step in steps]
        reply = Interpreter(reference).run(few)
        if "failed" in reply:
            raise ValueError(f"{function}, {title}: the reference fails: {reply['failed']}")
        answers = [None] * len(steps)
        for i, check in checks.items():
            answers[i] = {"right": reply["results"][i], **check}
            if "times" in check:                 # means and standard deviations are for reports
                rows = decode(reply["results"][i])
                answers[i]["right"] = encode(np.array([rows.mean(0), rows.std(0)]))
        tests.append((title, steps, answers))
    return tests
