"""Samplers for the tests of the classroom: right in six styles, and wrong in twenty ways.

    python tests/classroom_samplers.py        each in 30 seeds or more: a measurement, some minutes
"""
import sys
from functools import cache
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from classroom import catalogue, source
from classroom.scripts import build_tests
from classroom.testing import judge
from classroom.worker import Stage, load

SAMPLE = "BayesianLinearRegression.sample"
ACT = "LinearTS.act"
NOISE = "inverse_gamma_noise"


def sample(draw, noise="nu2 = self.b / rng.gamma(self.a)", result="nu2, mu_tilde"):
    """The text of a sampler: `draw` makes x, of covariance precision^-1 if it is right."""
    body = f"""
if nu2 is None:
    {noise}
g, root = len(self.mu_hat), self.root
{draw}
mu_tilde = self.mu_hat + np.sqrt(nu2) * x
return {result}"""
    lines = "\n        ".join(body.strip("\n").split("\n"))
    head = "class BayesianLinearRegression:\n    def sample(self, rng, nu2=None):"
    return f"{head}\n        {lines}\n"


def act(noise="nu2 = self.noise(self.arms, self.config, self.rng)",
        each="arm.sample(self.rng, nu2[i])[1]", end="return int(np.argmax(samples @ context))"):
    """The text of an agent's act."""
    return f"""
class LinearTS:
    def act(self, context):
        import copy
        plays = [arm.n for arm in self.arms]
        if min(plays) < self.config.initial_pulls:
            return plays.index(min(plays))
        {noise}
        samples = np.array([{each} for i, arm in enumerate(self.arms)])
        {end}
"""


def noise(value):
    return f"def inverse_gamma_noise(arms, config, rng):\n    return {value}\n"


NORMAL = "x = root @ rng.standard_normal(g)"
RIGHT = {
    "a root": (SAMPLE, sample(NORMAL)),
    "multivariate_normal": (SAMPLE, sample(
        "x = rng.multivariate_normal(np.zeros(g), root @ root.T)",
        "nu2 = 1 / rng.gamma(self.a, 1 / self.b)")),
    "eigenvectors, nu2 last": (SAMPLE, sample("""
w, Q = np.linalg.eigh(self.precision)
x = Q @ (rng.normal(size=g) / np.sqrt(w))
nu2 = self.b / rng.gamma(self.a) if nu2 is None else nu2""", "pass")),
    "chi-square": (SAMPLE, sample(
        "x = np.linalg.solve(np.linalg.cholesky(self.precision).T, rng.standard_normal(g))",
        "nu2 = 2 * self.b / rng.chisquare(2 * self.a)")),
    "scipy": (SAMPLE, sample("x = np.linalg.cholesky(root @ root.T) @ rng.standard_normal(g)", """
    from scipy.stats import invgamma
    nu2 = invgamma.rvs(self.a, scale=self.b, random_state=rng)""")),
    "float32": (SAMPLE, sample(
        "x = (root @ rng.standard_normal(g)).astype(np.float32)",
        result="np.float32(nu2), mu_tilde.astype(np.float32)")),
}
ALSO_RIGHT = {
    "an agent, from the last arm to the first": (ACT, act(
        "nu2 = self.noise(self.arms, self.config, self.rng)",
        "self.arms[-1 - i].sample(self.rng, nu2[-1 - i])[1]",
        "return len(self.arms) - 1 - int(np.argmax(samples @ context))")),
    "a noise by chi-square": (NOISE, noise(
        "np.array([2 * arm.b / rng.chisquare(2 * arm.a) for arm in arms])")),
}
MEMORY = """
z = rng.standard_normal(g)
kept = BayesianLinearRegression.__dict__.get("kept", [])
"""
WRONG = {
    "a diagonal covariance": (SAMPLE, sample(
        "x = np.sqrt(np.diag(root @ root.T)) * rng.standard_normal(g)")),
    "uniform noise": (SAMPLE, sample("x = root @ rng.uniform(-3 ** 0.5, 3 ** 0.5, g)")),
    "another nu2 returned than used": (SAMPLE, sample(
        NORMAL + "\nother = self.b / rng.gamma(self.a)", result="other, mu_tilde")),
    "a variance 15 % too wide": (SAMPLE, sample("x = 1.15 ** 0.5 * root @ rng.standard_normal(g)")),
    "nu for nu2": (SAMPLE, sample(f"{NORMAL} * np.sqrt(nu2)")),
    "nu drawn, and squared": (SAMPLE, sample(NORMAL, "nu2 = (self.b / rng.gamma(self.a)) ** 2")),
    "skewed": (SAMPLE, sample("x = root @ (rng.exponential(size=g) - 1)")),
    "correlated over calls": (SAMPLE, sample(f"""{MEMORY}
z = 0.3 * kept + 0.91 ** 0.5 * z if len(kept) == g else z
BayesianLinearRegression.kept = z
x = root @ z""")),
    "shared over arms": (SAMPLE, sample(f"""{MEMORY}
z = kept if len(kept) == g else z
BayesianLinearRegression.kept = [] if z is kept else z
x = root @ z""")),
    "antithetic": (SAMPLE, sample(f"""{MEMORY}
z = -kept if len(kept) == g else z
BayesianLinearRegression.kept = z if len(kept) != g else []
x = root @ z""")),
    "wrong degrees of freedom": (SAMPLE, sample(NORMAL, "nu2 = self.b / rng.gamma(self.a - 0.5)")),
    "chi-square with a for 2a": (SAMPLE, sample(
        NORMAL, "nu2 = 2 * self.b / rng.chisquare(self.a)")),
    "float16": (SAMPLE, sample("x = root.astype('f2') @ rng.standard_normal(g).astype('f2')",
                               result="nu2, mu_tilde.astype('f2')")),
    "shifted by a tenth": (SAMPLE, sample("x = root @ (rng.standard_normal(g) + 0.1)")),
    "heavy tails": (SAMPLE, sample("x = root @ rng.standard_t(6, g) * (4 / 6) ** 0.5")),
    "cut off at two": (SAMPLE, sample("x = root @ rng.standard_normal(g).clip(-2, 2) * 1.0645")),
    "the root transposed": (SAMPLE, sample("x = root.T @ rng.standard_normal(g)")),
    "one number for all coordinates": (SAMPLE, sample("x = root @ np.full(g, rng.normal())")),
    "the precision for the covariance": (SAMPLE, sample(
        "x = np.linalg.cholesky(self.precision) @ rng.standard_normal(g)")),
    "one nu2 for all arms": (ACT, act(each="arm.sample(self.rng, nu2[0])[1]")),
    "one generator state for all arms": (ACT, act(
        each="arm.sample(copy.deepcopy(self.rng), nu2[i])[1]",
        end="self.rng.random()\n        return int(np.argmax(samples @ context))")),
    "plays the means at times": (ACT, act(
        end="samples = np.array([arm.mu_hat for arm in self.arms]) if self.rng.random() < 0.1 "
            "else samples\n        return int(np.argmax(samples @ context))")),
    "repeats itself at times": (ACT, act(
        end="self.last = getattr(self, 'last', 0) if self.rng.random() < 0.1 "
            "else int(np.argmax(samples @ context))\n        return self.last")),
    "a noise shared by the arms": (NOISE, noise(
        "(lambda x: [arm.b / x for arm in arms])(rng.gamma(arms[0].a))")),
}


@cache
def reference():
    return load(catalogue.reference("thompson"), "nlts_reference")


@cache
def tests_of(function, seed):
    return build_tests(function, reference(), seed)


def words_of(function, text, seed):
    """What the tests of a function say first against a sampler, without a sandbox; or None."""
    program = source.blank(catalogue.reference("thompson"), [function])
    module = load(source.fill(program, text), "nlts")
    told = (judge(steps, answers, Stage(module).run(steps))
            for _, steps, answers in tests_of(function, seed))
    return next(filter(None, told), None)


def main():
    for name, (function, text) in {**RIGHT, **ALSO_RIGHT}.items():
        told = [words_of(function, text, 1000 + seed) for seed in range(50)]
        print(f"right  {name:<42}passed {50 - sum(map(bool, told))} of 50", flush=True)
    for name, (function, text) in WRONG.items():
        told = [words_of(function, text, 1000 + seed) for seed in range(30)]
        print(f"wrong  {name:<42}failed {sum(map(bool, told))} of 30", flush=True)


if __name__ == "__main__":
    main()
