"""Commands, what they tell of results, and the pages that results are put into."""
import re
from pathlib import Path

import numpy as np
import pytest
from test_runs import inline  # noqa: F401  (a fixture)

import experiments
import nlts
from lab import drawings, pages, paper, sanity, text, verdicts
from lab.agents import ALGORITHMS
from lab.plots import STYLE

HERE = Path(__file__).resolve().parent.parent
PNG = b"\x89PNG"


def run(command, tmp_path, *arguments):
    """python experiments.py COMMAND --out tmp_path ..., in this process."""
    experiments.main([command, "--out", str(tmp_path), *map(str, arguments)])


# The command line ---------------------------------------------------------------------------------

def test_without_a_command_it_prints_one_screen(capsys):
    with pytest.raises(SystemExit) as stop:
        experiments.main([])
    listing = capsys.readouterr().out
    assert stop.value.code == 0 and listing.count("\n") <= 24
    assert all(f"\n  {name} " in listing for name in experiments.COMMANDS)
    assert all(len(line) <= 100 for line in listing.splitlines())


@pytest.mark.parametrize("arguments, word", [
    (["forgetting", "--runs", "0"], "--runs"), (["nonsense"], "COMMAND"),
    (["table", "--jobs", "-1"], "--jobs"), (["table", "--datasets", "iris"], "iris"),
    (["table", "--algorithms", "linear,last-layer"], "last-layer")])
def test_bad_options_are_named(arguments, word, capsys):
    with pytest.raises(SystemExit) as stop:
        experiments.main(arguments)
    assert stop.value.code == 2 and word in capsys.readouterr().err


def test_names_are_separated_by_commas_or_spaces():
    for words in (["carried,linear"], ["carried", "linear"], ["carried,", "linear"]):
        o = experiments.parse(["table", "--algorithms", *words, "--datasets", "adult,statlog"])
        assert o.algorithms == ["linear", "carried"] and o.datasets == ["adult", "statlog"]
    o = experiments.parse(["table", "--quick"])
    assert o.algorithms == list(ALGORITHMS) and o.datasets == []
    assert o.out == HERE / "figures" / "quick"


@pytest.mark.parametrize("where", [where for where, *_ in experiments.COMMANDS.values()])
def test_every_command_is_where_the_table_says(where):
    module, function = where.split(":")
    path = HERE / f"{module.replace('.', '/')}.py"
    assert re.search(rf"^def {function}\(o\):", path.read_text(), re.MULTILINE)


# Commands -----------------------------------------------------------------------------------------

@pytest.mark.usefixtures("inline")
def test_forgetting_tells_and_draws(tmp_path, capsys):
    run("forgetting", tmp_path, "--runs", 2, "--steps", 450, "--algorithms", "linear,no-prior")
    out = capsys.readouterr().out
    assert re.search(r"no-prior: after / before +> 1.25 ", out)
    assert (tmp_path / "forgetting.txt").read_text() in out
    assert (tmp_path / "forgetting.png").read_bytes()[:4] == PNG
    assert (tmp_path / "forgetting.jsonl").read_text().count("\n") == 4


@pytest.mark.usefixtures("inline")
def test_table_of_own_data(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [f"{x[0]},{x[1]},{'red' if x[0] > 0 else 'blue'}" for x in rng.normal(size=(300, 2))]
    (tmp_path / "mine.csv").write_text("\n".join(["a,b,color", *rows]) + "\n")
    run("table", tmp_path, "--csv", tmp_path / "mine.csv", "--runs", 1, "--steps", 200,
        "--algorithms", "linear")
    found = re.search(r"Mine +200 +1 +(\d+) ± 0", capsys.readouterr().out)
    assert int(found[1]) > 140


@pytest.mark.usefixtures("inline")
def test_missing_data_is_skipped_with_a_way_to_get_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NLTS_DATA", raising=False)
    run("table", tmp_path, "--datasets", "covertype,statlog", "--algorithms", "linear", "--runs", 1,
        "--steps", 100)
    out, err = capsys.readouterr()
    assert "fetch covertype" in err and "Statlog" in out and "Covertype" not in out
    with pytest.raises(SystemExit, match="none of the data sets"):
        run("amazon", tmp_path)
    assert "kaggle" in capsys.readouterr().err


@pytest.mark.usefixtures("inline")
def test_wheel_drift_and_exploration_tell_and_draw(tmp_path, capsys):
    run("wheel", tmp_path, "--runs", 1, "--steps", 20, "--algorithms", "linear,both-priors")
    out = capsys.readouterr().out
    assert "b⁰ = 0.06  " in out and re.search(r"off by( +[+-]\d+\.\d %){5}\n", out)
    assert re.search(r"both-priors, 0.5 > linear, 0.5 .* \+162\.3 +unclear", out)
    assert (tmp_path / "wheel.png").read_bytes()[:4] == PNG
    run("exploration", tmp_path, "--runs", 2, "--steps", 20, "--datasets", "statlog",
        "--algorithms", "both-priors")
    assert len(re.findall(r"beats full memory .* on \d of 1", capsys.readouterr().out)) == 3
    assert (tmp_path / "exploration.png").read_bytes()[:4] == PNG
    run("drift", tmp_path, "--runs", 2, "--steps", 20, "--datasets", "statlog")
    assert re.search(r"gained +no-prior +linear -", capsys.readouterr().out)
    assert (tmp_path / "drift.png").read_bytes()[:4] == PNG


# What is told -------------------------------------------------------------------------------------

MEANS = {"neural-linear": 300.0, "perfect-prior": 200.0, "carried": 196.0, "both-priors": 100.0,
         "mu-prior": 10.0}


def made_up(**means):
    """Lines of two data sets, eight runs: a difficulty of the run, and what an algorithm adds."""
    rng, lines = np.random.default_rng(0), []
    for dataset in ("statlog", "adult"):
        difficulty = 100 * rng.normal(size=8)
        for name in ALGORITHMS:
            reward = 4000 + means.get(name, 0.0) + difficulty + rng.normal(size=8)
            lines += [{"dataset": dataset, "algorithm": name, "run": k, "reward": reward[k],
                       "dim": 9, "arms": 7, "steps": 5000,
                       "config": f"{dataset} {name}", "seconds": 180.0 if k else 1e6}
                      for k in range(8)]
    return lines


def test_the_papers_numbers_are_those_of_the_paper():
    path = HERE.parent / "shared" / "paper.tex"
    if not path.exists():
        pytest.skip("the paper's text is not beside the repository")
    latex = path.read_text()
    for name, row in paper.TABLE.items():
        line = next(part for part in latex.split("\\rule{0pt}{2.6ex}")
                    if part.strip().lower().startswith(name))
        numbers = re.findall(r"([\d.]+)\s*\$\\pm\$\s*([\d.]+)", line)
        assert [(float(m), float(s)) for m, s in numbers] == [(float(m), float(s)) for m, s in row]
    for numbers in (*paper.WHEEL.values(), paper.AMAZON):
        for mean, sd in numbers.values():
            assert re.search(rf"{mean}0? *\$\\pm\$ *{sd}", latex)


def test_the_table_stands_beside_the_papers():
    lines = made_up(**MEANS)
    report = verdicts.table(lines, verdicts.by_dataset(lines))
    assert re.search(r"Statlog +5000 +8 ", report)
    assert re.search(r"in the paper +5000 +50 +4483 ± 353 .* 4623 ± 276", report)
    assert re.search(r"50 runs of each on two cores.* 17\.5 h +NOT met", report)


def test_two_kinds_of_forgetting_are_told_apart():
    """Paired by run its difficulty (sd 100) cancels: within 5 standard errors of what is put in."""
    rewards = verdicts.complete(verdicts.by_dataset(made_up(**MEANS)))
    assert list(rewards) == ["statlog", "adult"]
    for own in rewards.values():
        network, posterior = verdicts.kinds(own)
        assert abs(network.mean() - 100) < 5 * np.sqrt(2 / 8)
        assert abs(posterior.mean() - 200) < 5 * np.sqrt(2 / 8)
        theirs, error = verdicts.won_back(own, "both-priors")
        assert abs(theirs - 0.5) < 5 * 0.007 and 0 < error < 0.02
        assert abs(verdicts.won_back(own, "carried")[0] - 0.98) < 5 * 0.007
        mixed_up = own | {"no-prior": own["no-prior"][::-1]}    # planted: runs that are no pairs
        assert verdicts.won_back(mixed_up, "both-priors")[1] > 5 * error


def test_data_sets_without_all_algorithms_or_with_one_run_are_left_out():
    lines = made_up(**MEANS)
    rest = [line for line in lines if (line["dataset"], line["algorithm"]) != ("adult", "linear")]
    assert list(verdicts.complete(verdicts.by_dataset(rest))) == ["statlog"]
    assert verdicts.complete(verdicts.by_dataset(line for line in lines if line["run"] == 0)) == {}


def test_the_jackknife_knows_the_spread_of_a_share():
    """Its error, averaged over 300 samples of 20 runs, is the spread within 15 % (4 sigma)."""
    rng, values, errors = np.random.default_rng(0), [], []
    for _ in range(300):
        whole = 10 + rng.normal(size=20)
        value, error = text.share(0.8 * whole + rng.normal(size=20), whole)
        values.append(value)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)
    assert np.mean(values) == pytest.approx(0.8, abs=0.01)
    assert np.isnan(text.share(np.ones(3), np.zeros(3))).all()


@pytest.mark.parametrize("change, pattern", [
    ({}, r"carried at least as good as .* 2 of 2 +met"),
    ({}, r"by more than a standard error .* 2 of 2 +NOT met"),       # eight are wanted
    ({}, r"carried wins back, median .* 98 % +NOT met"),
    ({"carried": 202.0}, r"carried wins back, median .* 10\d % +met"),
    ({"mu-prior": 500.0}, r"carried at least as good as .* 0 of 2 +NOT met"),
    ({"neural-linear": 600.0}, r"carried within 2 % of full memory.* 0 of 2 +NOT met"),
    ({"carried": 0.0}, r"carried below the perfect prior.* 4\.\d % +NOT met"),
    ({}, r"carried below the perfect prior.* 0\.1 % +met"),
    ({}, r"both-priors above mu-prior and no-prior .* 2 of 2 +met"),
    ({"no-prior": 150.0}, r"both-priors above mu-prior and no-prior .* 0 of 2 +NOT met"),
    ({}, r"both-priors above full memory .* 0 of 2 +NOT met"),
    ({"both-priors": 825.0}, r"Statlog: the paper's number.* 4825 ± 305 +48\d\d +met"),
    ({}, r"Statlog: the paper's number.* +NOT met"),
    ({"both-priors": 825.0}, r"Adult: the paper's number.* 3943 ± 54.29 +48\d\d +NOT met")])
def test_goals_are_counted_and_can_fail(change, pattern):
    assert re.search(pattern, verdicts.goals_text(verdicts.by_dataset(made_up(**MEANS | change))))


def test_claims_have_the_papers_numbers_and_a_verdict():
    """The paper has 4825 - 4623 and 3943 - 3608.2, then 4825 - 4781 and 3943 - 4010."""
    claims = verdicts.claims_text(verdicts.by_dataset(made_up(**MEANS)))
    gained = r" +\+\d+ ± \d+ +\+\d+ ± \d+"
    assert re.search(rf"both-priors > no-prior{gained} +supported, on 2 of the paper's 2 and on 0 "
                     r"more\n +in the paper +\+202 +\+335\n", claims)
    lost = r" +-\d+ ± \d+ +-\d+ ± \d+"
    assert re.search(rf"both-priors > neural-linear{lost} +not supported, on 0 of the paper's 1 "
                     r"and on 0 more\n +in the paper +\+44 +-67\n", claims)


def test_a_claim_is_held_to_the_data_sets_that_the_paper_names():
    """Full memory is beaten on Adult, where the paper's is not, and not on Statlog, where it is."""
    rewards = verdicts.by_dataset(made_up(**MEANS))
    rewards["adult"]["both-priors"] = rewards["adult"]["neural-linear"] + 5 + np.arange(8) / 8
    found = {claim: verdict for claim, *_, verdict in verdicts.claims(rewards)}
    assert found["both-priors > neural-linear"] == ("not supported, on 0 of the paper's 1 "
                                                    "and on 1 more")
    assert found["both-priors > linear"] == "supported, on 1 of the paper's 1 and on 1 more"
    assert verdicts.holds({"a"}, {"a", "b"}) == "in part, on 1 of the paper's 2 and on 0 more"
    assert verdicts.holds({"a"}, set()).startswith("not claimed")


def test_verdicts():
    assert text.verdict(2.1, 1.0) == "supported" and text.verdict(1.9, 1.0) == "unclear"
    assert text.verdict(-2.1, 1.0) == "not supported" and text.verdict(-1.9, 1.0) == "unclear"
    assert text.verdict(-0.5, np.inf) == "unclear"
    assert text.verdict(-0.5, 0.1, bound=-1.0) == "supported"


def test_peaks_after_retraining_are_seen():
    """Regret 0.1 a step, 0.2 in the 50 steps after each retraining: a ratio of 2. Of the steps
    before the first retraining, where all are bad, nothing is counted."""
    flat = np.full((3, 1000), 0.1)
    flat[:, :200] = 1.0
    peaks = flat.copy()
    for start in (200, 400, 600, 800):
        peaks[:, start:start + 50] = 0.2
    found = verdicts.forgetting({"carried": flat, "no-prior": peaks}, 200)
    assert re.search(r"carried: after / before +<= 1.0 +1\.00 +met", found)
    assert re.search(r"no-prior: after / before +> 1.25 +2\.00 +met", found)
    worse = verdicts.forgetting({"carried": peaks, "no-prior": flat}, 200)
    assert worse.count("NOT met") == 2


def test_amazon_compares_with_the_best_epsilon():
    rng = np.random.default_rng(0)
    rewards = {name: 1000 + mean + rng.normal(size=5) for name, mean in
               (("ε=0.1", 0), ("ε=0.2", 50), ("neural-linear", 80), ("both-priors", 20))}
    found = verdicts.amazon(rewards, 5000, np.array([0, 4, 4, 1]))
    assert "the best ε: ε=0.2" in found
    assert re.search(r"both-priors > best ε +-\d.* \+180\.0 +not supported", found)
    assert re.search(r"as good as neural-linear \(2%\) +-\d.* -11\.7 +not supported", found)
    assert "earns about 2500" in found


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_growth_finds_the_power_and_its_error(power):
    rng, x = np.random.default_rng(0), np.geomspace(1, 1000, 200)
    assert text.growth(x, 3 * x ** power) == pytest.approx((power, 0), abs=1e-9)
    p, e = text.growth(x, 3 * x ** power * np.exp(0.1 * rng.normal(size=200)))
    assert abs(p - power) < 4 * e
    assert e == pytest.approx(0.1 / np.sqrt(200) / np.log(x).std(), rel=0.3)
    kink = np.where(x < 30, 30.0, x) ** power
    assert text.growth(x, kink, least=30)[0] == pytest.approx(power)
    assert text.growth(x, kink, most=29)[0] == pytest.approx(0, abs=1e-9)


# Pictures -----------------------------------------------------------------------------------------

def test_every_algorithm_has_a_style_of_its_own():
    """Told apart without color, by line and marker, and by the lightness of the color."""
    assert set(STYLE) == set(ALGORITHMS)
    for key in ("color", "linestyle", "marker"):
        assert len({str(style[key]) for style in STYLE.values()}) == len(STYLE)


def test_kinds_are_drawn_for_each_data_set():
    figure = drawings.kinds(verdicts.by_dataset(made_up(**MEANS)))
    left, right = figure.axes
    assert [tick.get_text() for tick in left.get_yticklabels()] == ["Statlog", "Adult"]
    assert len(left.patches) == 4 and len(right.containers) == 2


# Appendix C ---------------------------------------------------------------------------------------

def test_the_sanity_check_can_fail(monkeypatch):
    """Planted: the posterior that is carried over still contains the buffer, which counts twice."""
    assert np.max(sanity.prior_errors(np.random.default_rng(0), 8, 16, 0.0)[0]) < 1e-10
    monkeypatch.setattr(nlts.BayesianLinearRegression, "without", lambda arm, E, r: arm)
    assert np.min(sanity.prior_errors(np.random.default_rng(0), 8, 16, 0.0)[0]) > 1e-3


def test_prior_errors_vanish_where_the_assumptions_hold_and_grow_where_not():
    def errors(n, eps):
        return np.mean([sanity.prior_errors(np.random.default_rng(k), 8, n, eps)
                        for k in range(5)], axis=0)

    exact, few, bent, strongly = errors(16, 0.0), errors(4, 0.0), errors(40, 0.1), errors(40, 1.0)
    assert exact.shape == (4, 2) and exact[0].max() < 1e-10 and exact[1:].min() > 1e-4
    assert few[0].min() > 1e-3 and (bent[0] < strongly[0]).all()


def test_sanity_command(tmp_path, capsys):
    run("sanity", tmp_path, "--quick", "--runs", 1)
    out = capsys.readouterr().out
    assert "Appendix C, the analytical prior is exact: supported" in out
    for name, found in (("analytical", "exact"), ("likelihood matching", "not exact")):
        assert re.search(rf"{name} +\d\S+e-\d+ +\d\S+e-\d+ +{found}\n", out)
    assert (tmp_path / "sanity.png").read_bytes()[:4] == PNG


# Pages --------------------------------------------------------------------------------------------

def test_blocks_are_filled_from_their_files(tmp_path):
    (tmp_path / "a.txt").write_text("1 2\n")
    (tmp_path / "b.md").write_text("| x |\n")
    page = tmp_path / "README.md"
    page.write_text("x\n<!-- a.txt -->\ntyped by hand\n<!-- end -->\n<!-- b.md -->\n<!-- end -->\n"
                    "<!-- gone.txt -->\nstays\n<!-- end -->\n")
    assert pages.filled(page) == (
        "x\n<!-- a.txt -->\n```\n1 2\n```\n<!-- end -->\n<!-- b.md -->\n| x |\n<!-- end -->\n"
        "<!-- gone.txt -->\nstays\n<!-- end -->\n")


def test_the_summary_has_the_papers_number_and_the_claims():
    summary = pages.summary(verdicts.by_dataset(made_up(**MEANS)))
    row = next(line for line in summary.splitlines() if line.startswith("| Statlog"))
    assert "4825 ± 305" in row and row.count("|") == 7
    assert "- both-priors > neural-linear: not supported, on 0 of the paper's 1 " in summary


@pytest.mark.parametrize("page", ["README.md", "figures/README.md"])
def test_the_pages_hold_what_the_results_files_say(page):
    """`python experiments.py results` would change nothing: no number is typed by hand."""
    path = HERE / page
    assert pages.filled(path) == path.read_text()
    blocks = pages.BLOCK.findall(path.read_text())
    assert blocks and all((path.parent / block).exists() for block in blocks)
