"""From the scripts of cases.toml to steps for a worker, drawn from a seed."""
import tomllib

import numpy as np

from .catalogue import read_text
from .worker import Stage, encode

CASES = tomllib.loads(read_text("cases.toml"))
SHORT = {"BayesianLinearRegression": "arm", "LinearTS": "agent", "NeuralLinearTS": "agent",
         "default_rng": "rng"}
STATE = ("Phi", "precision", "chol", "f", "mu_hat", "a", "R2", "b", "n")


class Name:
    """What has this name in the student's process. To call it or to set an attribute is a step."""

    def __init__(self, steps, path):
        self.__dict__.update(_steps=steps, _path=path)

    def __getattr__(self, name):
        return Name(self._steps, f"{self._path}.{name}")

    def __getitem__(self, index):
        return Name(self._steps, f"{self._path}.{index}")

    def __setattr__(self, name, value):
        self._steps.append({"path": f"{self._path}.{name}", "value": coded(value)})

    def __call__(self, *args, **kwargs):
        what = self._path.rpartition(".")[2]
        handle = f"{SHORT.get(what, what.lower())}{len(self._steps)}"
        keywords = {name: coded(value) for name, value in kwargs.items()}
        self._steps.append({"path": self._path, "as": handle, "args": coded(args),
                            "kwargs": keywords})
        return Name(self._steps, handle)


def coded(value):
    """An argument as the pipe takes it."""
    if isinstance(value, Name):
        return {"name": value._path}
    if isinstance(value, (list, tuple)):
        return [coded(item) for item in value]
    return encode(value)


class Script:
    """One test: its steps, and what is compared. Its methods are the tools of cases.toml."""

    def __init__(self, nlts, random):
        self.nlts, self.random, self.steps, self.checks = nlts, random, [], {}

    def normal(self, *shape):
        return self.random.normal(size=shape or None)

    def whole(self, low=0, high=2 ** 31):
        return int(self.random.integers(low, high))

    def state(self, arm):
        return [getattr(arm, name) for name in STATE]

    def posterior(self, g, n=0, b0=2.0):
        root = self.normal(g, g)
        prior = root @ root.T + np.eye(g), self.normal(g), 3.0, b0
        E, r = self.normal(n, g), self.normal(n)
        arm = Name(self.steps, "BayesianLinearRegression")(*prior)
        right = self.nlts.BayesianLinearRegression(*prior)
        if n:
            right.update(E, r)
            for name, value in vars(right).items():
                setattr(arm, name, value)
        return arm, E, r

    def agent_of(self, n_arms, **options):
        """LinearTS in two dimensions whose arms have seen some tuples."""
        agent = Name(self.steps, "LinearTS")(2, n_arms, seed=self.whole(), **options)
        agent.arms = [self.posterior(2, 3, 0.5)[0] for _ in range(n_arms)]
        agent.t = 100
        return agent

    def buffer_of(self, arms, capacity=None):
        """A buffer of tuples of these arms; the contexts count them."""
        buffer = Name(self.steps, "ReplayBuffer")(capacity)
        buffer.tuples = [(np.array([float(i), -1.0]), arm, self.normal())
                         for i, arm in enumerate(arms)]
        return buffer

    def network_agent(self, prior, tuples=12, **options):
        """Algorithm 2 after some tuples, each seen by the buffer and by its arm."""
        seed, contexts = self.whole(), self.normal(tuples, 3)
        network = Name(self.steps, "MLP")(3, 2, 4, seed=seed)
        options = {"P": 3, "batch": 4, "lr": 0.05, "seed": self.whole()} | options
        agent = Name(self.steps, "NeuralLinearTS")(network, 2, 6, prior, **options)
        phi = self.nlts.last_layer_activations(self.nlts.MLP(3, 2, 4, seed=seed), contexts)
        for i in range(tuples):
            arm, reward = self.whole(0, 2), self.normal()
            agent.buffer.add(contexts[i], arm, reward)
            agent.arms[arm].update(phi[i], reward)
        agent.t = tuples
        return agent

    def square(self, g):
        """Old features, new ones that are linear in them, an old mean and precision."""
        E_old, A = self.normal(2, g, g) + 2 * np.eye(g)
        root = self.normal(g, g)
        return E_old, E_old @ A.T, self.normal(g), root @ root.T + np.eye(g)

    def dual_point(self):
        """A point y, features, targets, ridge and floor; no eigenvalue near the floor."""
        while True:
            y, E, t = self.normal(4), self.normal(4, 3), self.random.uniform(0.2, 2, 4)
            if np.abs(np.linalg.eigvalsh((E.T * y) @ E) - 0.05).min() > 0.05:
                return y, E, t, 0.1, 0.05

    def same(self, *names, how="close", **options):
        """Compare results of calls, or attributes."""
        for name in names:
            made = [step.get("as") for step in self.steps]
            if name._path not in made:
                made.append(name._path)
                self.steps.append({"path": name._path})
            self.checks[made.index(name._path)] = {"how": how} | {
                key: np.asarray(value).tolist() for key, value in options.items()}

    def draws(self, times, name, *args):
        """Compare the distributions of many results."""
        result = name(*args)
        self.steps[-1]["times"] = times
        self.same(result, how="draws")


def build_tests(function, nlts, seed):
    """The tests of a function, as in testing.py; the same seed gives the same tests."""
    random = np.random.default_rng([seed, *function.encode()])
    tests = []
    for title, text in CASES[CASES[function].get("like", function)].items():
        script = Script(nlts, random)
        names = {name: Name(script.steps, name) for name in vars(nlts) if name[0] != "_"}
        names |= {name: getattr(script, name) for name in dir(script) if name[0] != "_"}
        exec(text, names | {"array": np.array, "function": names.get(function)})
        reply = Stage(nlts).run(script.steps)
        if "failed" in reply:
            raise ValueError(f"{function}, {title}: the reference fails: {reply['failed']}")
        answers = [None] * len(script.steps)
        for i, check in script.checks.items():
            answers[i] = {"right": reply["results"][i], **check}
        tests.append((title, script.steps, answers))
    return tests
