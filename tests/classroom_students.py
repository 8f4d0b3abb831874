"""Students' work for the tests of the classroom: right in other ways than ours, and wrong."""
from classroom import catalogue, source
from classroom.submissions import Submission

BLR = '''
class BayesianLinearRegression:
    def update(self, phi, r):
        import random                                  # harmless, and once forbidden
        for row, reward in zip(np.atleast_2d(phi), np.atleast_1d(r)):
            self.Phi = self.Phi + np.outer(row, row)
            self.f = self.f + row * reward
            self.R2 = self.R2 + reward ** 2
            self.a, self.n = self.a + 0.5, self.n + 1
            if not hasattr(self, "first_b"):
                self.first_b = self.b
            before = self.precision - np.outer(row, row)
            e = reward - row @ self.mu_hat
            self.b = self.b + e * e / (1 + row @ np.linalg.inv(before) @ row) / 2
            self.mu_hat = np.linalg.inv(self.precision) @ (self.Phi0 @ self.mu0 + self.f)
            self.root = np.linalg.cholesky(np.linalg.inv(self.precision))

    def s2(self, E):
        return np.array([row @ np.linalg.inv(self.precision) @ row for row in E])

    def without(self, E, r):
        P = self.precision - E.T @ E
        mu = np.linalg.inv(P) @ (self.precision @ self.mu_hat - E.T @ r)
        e = r - E @ mu
        b = self.b - e @ np.linalg.inv(np.eye(len(r)) + E @ np.linalg.inv(P) @ E.T) @ e / 2
        return BayesianLinearRegression(P, mu, self.a - len(r) / 2, b, self.n - len(r))
'''
THOMPSON = '''
def inverse_gamma_noise(arms, config, rng):
    return np.array([1 / rng.gamma(arm.a, 1 / arm.b) for arm in arms])


class BayesianLinearRegression:
    def sample(self, nu2, rng):
        z = np.linalg.cholesky(self.root @ self.root.T) @ rng.normal(size=len(self.mu_hat))
        return self.mu_hat + nu2 ** 0.5 * z


class LinearTS:
    def scores(self, context):
        drawn = list(zip(self.arms, self.noise(self.arms, self.config, self.rng)))
        values = [context @ arm.sample(nu2, self.rng) for arm, nu2 in reversed(drawn)]
        return values[::-1]

    def act(self, context):
        pulls = [max(chosen, arm.n) for chosen, arm in zip(self.chosen, self.arms)]
        choice = pulls.index(min(pulls))
        if min(pulls) >= self.config.initial_pulls:
            choice = int(np.argmax(self.scores(context)))
        self.chosen[choice] = self.chosen[choice] + 1
        return choice

    def update(self, context, arm, reward):
        self.t = self.t + 1
        self.arms[arm].update(context, reward)
'''
BUFFER = '''
class ReplayBuffer:
    def add(self, context, arm, reward):
        if self.capacity is not None and len(self.tuples) == self.capacity:
            count = {}
            for _, other, _ in self.tuples:
                count[other] = count.get(other, 0) + 1
            if arm not in count:
                most = max(count.values())
                loser = min(other for other in count if count[other] == most)
            else:
                loser = arm
            for i, row in enumerate(self.tuples):
                if row[1] == loser:
                    self.tuples.pop(i)
                    break
        self.tuples.append([np.array(context, dtype=float), arm, reward])

    def arrays(self):
        if not self.tuples:
            raise ValueError("nothing to learn from")
        return [np.array([row[i] for row in self.tuples]) for i in range(3)]
'''
INVERTIBLE = '''
def match_mean(E_old, E_new, mu_old):
    return np.linalg.pinv(E_new) @ E_old @ mu_old


def invertible_prior(forgotten, E_old, E_new, weights, lam):
    found = []
    for old, E, new in zip(forgotten, E_old, E_new):
        if min(np.linalg.matrix_rank(E), np.linalg.matrix_rank(new)) < E.shape[1]:
            raise ValueError("rank")
        A = (np.linalg.pinv(E) @ new).T
        found.append((A @ old.precision @ A.T, np.linalg.pinv(new) @ E @ old.mu_hat))
    return found
'''
MATCHING = '''
def match_covariance_sdp(E_new, s2, rho=0.0, least=0.0, **solver):
    import cvxpy
    g = E_new.shape[1]
    S = cvxpy.Variable((g, g), symmetric=True)
    fits = [cvxpy.square(cvxpy.trace(np.outer(e, e) @ S) - t) for e, t in zip(E_new, s2)]
    cost = sum(fits) + rho * cvxpy.sum_squares(S)
    cvxpy.Problem(cvxpy.Minimize(cost), [S - least * np.eye(g) >> 0]).solve(**solver)
    return S.value
'''
LIMITED = '''
def likelihood_matching(forgotten, E_old, E_new, weights, lam, match=match_covariance):
    found = []
    for old, E, new, w in zip(forgotten, E_old, E_new, weights):
        s2 = np.array([phi @ np.linalg.solve(old.precision, phi) for phi in E])
        if s2.sum() > 0 and np.abs(new).sum() > 0:
            found.append((np.linalg.inv(match(new, s2)), w.copy()))
        else:
            found.append((old.precision.copy(), w.copy()))
    return found


class NeuralLinearTS:
    def phi(self, context):
        return last_layer_activations(self.network, np.array([context]))[0]

    def update(self, context, arm, reward):
        self.arms[arm].update(self.phi(context), reward)
        self.buffer.add(context, arm, reward)
        self.t += 1
        if self.t % self.config.L == 0:
            self.learn()

    def learn(self):
        x, played, r = self.buffer.arrays()
        rows = [(x[played == i], r[played == i]) for i in range(self.n_arms)]
        old = [last_layer_activations(self.network, x) for x, _ in rows]
        left = [arm.without(E, r) for arm, E, (_, r) in zip(self.arms, old, rows)]
        self.train(self.network, self.buffer, self.config, self.rng.spawn(1)[0])
        new = [last_layer_activations(self.network, x) for x, _ in rows]
        weights = last_layer_weights(self.network)
        priors = self.prior(left, old, new, weights, self.config.lam)
        for i in range(self.n_arms):
            self.arms[i] = BayesianLinearRegression(*priors[i], left[i].a, left[i].b, left[i].n)
            self.arms[i].update(new[i], rows[i][1])
'''
PRIOR = '''
def better_prior(forgotten, E_old, E_new, weights, lam):
    return [(old.precision, old.mu_hat) for old in forgotten]
'''
WORKS = {"blr": BLR, "thompson": THOMPSON, "buffer": BUFFER, "invertible": INVERTIBLE,
         "matching": MATCHING, "limited": LIMITED, "prior": PRIOR}


def fill(text, work):
    """The text with the functions of `work` in place of its own, {function: text}."""
    lines, ours, given = text.split("\n"), source.definitions(text), source.definitions(work)
    for name in (name for name in reversed(ours) if name in given):
        lines[source.span(ours[name])] = work.split("\n")[source.span(given[name])]
    return "\n".join(lines)


def text_of(name, work=None):
    """A student's nlts.py: the handout with this work filled in."""
    return fill(catalogue.handed_out(name), WORKS[name] if work is None else work)


def submission(identity, text, files=None):
    """A submission that is nothing but a text, and perhaps files beside it."""
    files = {"nlts.py": text.encode(errors="replace"), **(files or {})}
    return Submission(identity, files, "nlts.py", text)


def failures(result):
    """Everything that a report says against a submission."""
    told = [words for outcomes in result.outcomes.values() for _, words in outcomes]
    return " ".join(filter(None, [result.problem, *told]))
