"""The paper's own numbers, to compare with: cumulative reward, mean and standard deviation."""
RUNS = 50
ALGORITHMS = "linear", "neural-linear", "both-priors", "mu-prior", "no-prior"
METHOD = "printed", "both-priors"                     # the paper's, in two readings of Eq. 6
NONLINEAR = "census", "statlog", "epileptic", "smartphones", "scania"
TABLE = {  # Table 1, 5,000 steps: by ALGORITHMS
    "mushroom": [(11022, 774), (10880, 853), (10923, 839), (9442, 1351), (7613, 1670)],
    "financial": [(4588, 587), (4389, 584), (4597, 597), (4311, 598), (4225, 594)],
    "jester": [(14080, 2240), (12819, 2135), (9624, 2186), (10996, 2013), (11114, 2050)],
    "adult": [(4066.1, 11.03), (4010.0, 22.19), (3943.0, 54.29), (3839.5, 17.63), (3608.2, 34.94)],
    "covertype": [(3054, 557), (2898, 545), (2828, 593), (2347, 615), (2334, 603)],
    "census": [(1791.5, 39.47), (2135.5, 51.47), (2023.16, 37.3), (1873, 757), (1943.83, 84.2)],
    "statlog": [(4483, 353), (4781, 274), (4825, 305), (4681, 285), (4623, 276)],
    "epileptic": [(1202.9, 34.68), (1706.9, 41.26), (1716.8, 60.44), (1572.9, 48.66),
                  (1411.0, 33.43)],
    "smartphones": [(3085.8, 24.64), (3643.5, 64.89), (2660.4, 84.72), (3064.5, 55.06),
                    (2851.6, 58.77)],
    "scania": [(4691.8, 7.23), (4784.7, 6.05), (4742.0, 33.0), (4698.0, 13.06), (4470.4, 37.9)],
}
NOT_COMPARABLE = {  # whose rows or rewards are not the paper's
    "financial": "3,713 rows for 5,000 steps; portfolios are drawn at random",
    "jester": "which joke is which column is not known",
    "census": "the first 15,317 of 2,458,285 rows",
    "scania": "the first 9,000 of 60,000 rows",
}
COMPARABLE = tuple(d for d in TABLE if d not in NOT_COMPARABLE)
AMAZON = {"ε-greedy": (2963.9, 68.5), "neural-linear": (3155.6, 34.9),
          "both-priors": (3143.9, 33.5)}              # Figure 3, a table
WHEEL = {  # Table 2
    "wheel-0.5": {"linear": (737.44, 3.04), "both-priors": (899.72, 12.79)},
    "wheel-0.3": {"linear": (735.37, 2.58), "both-priors": (781.09, 11.34)},
    "wheel-0.1": {"linear": (735.51, 2.59), "both-priors": (751.75, 3.6)},
}


def number(dataset, algorithm):
    """The paper's (mean, standard deviation), or None. `printed` has the number of both-priors."""
    algorithm = "both-priors" if algorithm == "printed" else algorithm
    if dataset in WHEEL:
        return WHEEL[dataset].get(algorithm)
    return dict(zip(ALGORITHMS, TABLE.get(dataset, ()), strict=False)).get(algorithm)


def cell(number):
    """'mean ± standard deviation' as the paper prints it; '' where it has no number."""
    return "{:g} ± {:g}".format(*number) if number else ""
