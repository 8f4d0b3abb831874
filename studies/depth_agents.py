"""The deeper network of Sec. 4.2: two hidden layers, of 500 and 800 ReLUs."""
import torch
from torch import nn

WIDTHS = 500, 800


class DeepMLP(nn.Module):
    """nlts.MLP with another hidden layer; first weights are chosen as there."""

    def __init__(self, dim, n_arms, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)

        def uniform(rows, columns, most):
            x = torch.empty(rows, columns, dtype=torch.float64)
            return nn.Parameter(x.uniform_(-most, most, generator=generator))

        first, last = WIDTHS
        self.first = uniform(first, dim, dim ** -0.5)
        self.first_bias = nn.Parameter(torch.zeros(first, dtype=torch.float64))
        self.second = uniform(last, first, first ** -0.5)
        self.second_bias = nn.Parameter(torch.zeros(last, dtype=torch.float64))
        self.weights = uniform(n_arms, last, 0.3 * (50 / last) ** 0.5)

    def features(self, x):
        """phi of each row of x: (n, d) -> (n, 800)."""
        x = torch.relu(nn.functional.linear(x, self.first, self.first_bias))
        return torch.relu(nn.functional.linear(x, self.second, self.second_bias))

    def forward(self, x):
        """D(b), the estimated reward of each arm: (n, d) -> (n, N)."""
        return self.features(x) @ self.weights.T
