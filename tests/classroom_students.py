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

    def variance(self, E):
        return np.array([row @ np.linalg.inv(self.precision) @ row for row in E])

    def predict(self, phi):
        s2 = self.variance([phi])[0]
        return [float(phi @ self.mu_hat), (self.b * s2 / self.a) ** 0.5, 2 * self.a]

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
    def sample(self, rng, nu2=None):
        z = np.linalg.cholesky(self.root @ self.root.T) @ rng.normal(size=len(self.mu_hat))
        if nu2 is None:
            nu2 = 1 / rng.gamma(self.a, 1 / self.b)
        return nu2, self.mu_hat + nu2 ** 0.5 * z


class LinearTS:
    def act(self, context):
        for pulls in range(self.config.initial_pulls):
            for i, arm in enumerate(self.arms):
                if arm.n == pulls:
                    return i
        drawn = list(zip(self.arms, self.noise(self.arms, self.config, self.rng)))
        values = [context @ arm.sample(self.rng, nu2)[1] for arm, nu2 in reversed(drawn)]
        return self.n_arms - 1 - int(np.argmax(values))

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
        return [np.array([row[i] for row in self.tuples]) for i in range(3)]

    def rows_of(self, arm):
        rows = [row for row in self.tuples if row[1] == arm]
        d = len(self.tuples[0][0])
        return np.array([row[0] for row in rows]).reshape(-1, d), np.array([row[2] for row in rows])
'''
INVERTIBLE = '''
def match_mean(E_old, E_new, mu_old):
    return np.linalg.pinv(E_new) @ E_old @ mu_old


def invertible_prior(E_old, E_new, mu_old, Phi_old):
    A = np.linalg.solve(E_old, E_new).T
    return A @ Phi_old @ A.T, np.linalg.solve(E_new, E_old @ mu_old)
'''
MATCHING = '''
def match_covariance_sdp(E_new, s2, ridge=0.0, floor=0.0, **solver):
    import cvxpy
    E, s2, scale = _without_units(E_new, s2)
    S = cvxpy.Variable((E.shape[1], E.shape[1]), symmetric=True)
    fits = [cvxpy.square(cvxpy.trace(np.outer(e, e) @ S) - t) for e, t in zip(E, s2)]
    cost = sum(fits) + ridge * cvxpy.sum_squares(S)
    cvxpy.Problem(cvxpy.Minimize(cost), [S - floor * np.eye(E.shape[1]) >> 0]).solve(**solver)
    return scale * S.value
'''
LIMITED = '''
def likelihood_matching(forgotten, E_old, E_new, weights, lam, match=match_covariance):
    found = []
    for old, E, new, w in zip(forgotten, E_old, E_new, weights):
        s2 = np.array([phi @ np.linalg.solve(old.precision, phi) for phi in E])
        found.append((np.linalg.inv(match(new, s2)), w.copy()))
    return found


class NeuralLinearTS:
    def act(self, context):
        plays = np.array([arm.n for arm in self.arms])
        if plays.min() < self.config.initial_pulls:
            return int(plays.argmin())
        phi = last_layer_activations(self.network, np.array([context]))[0]
        nu2 = self.noise(self.arms, self.config, self.rng)
        return int(np.argmax([phi @ arm.sample(self.rng, s)[1] for arm, s in zip(self.arms, nu2)]))

    def update(self, context, arm, reward):
        phi = last_layer_activations(self.network, np.array([context]))[0]
        self.arms[arm].update(phi, reward)
        self.buffer.add(context, arm, reward)
        self.t += 1
        if self.t % self.config.L == 0:
            self.learn()

    def learn(self):
        rows = [self.buffer.rows_of(i) for i in range(self.n_arms)]
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
WORKS = {"blr": BLR, "thompson": THOMPSON, "buffer": BUFFER, "invertible": INVERTIBLE,
         "matching": MATCHING, "limited": LIMITED}


def text_of(name, work=None):
    """A student's nlts.py: the handout with this work filled in."""
    return source.fill(catalogue.sealed(name), WORKS[name] if work is None else work)


def submission(identity, text, files=None):
    """A submission that is nothing but a text, and perhaps files beside it."""
    files = {"nlts.py": text.encode(errors="replace"), **(files or {})}
    return Submission(identity, files, "nlts.py", text)
