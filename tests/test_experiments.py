"""Commands, what they tell of results, and the pages that results are put into."""
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_runs import inline  # noqa: F401  (a fixture)

import experiments
import nlts
from lab import options, pages, paper, report
from lab.recipes import ALGORITHMS, RECIPES
from lab.report import STYLE

HERE = Path(__file__).resolve().parent.parent
PNG = b"\x89PNG"
PLAYED = [name for name, command in experiments.COMMANDS.items() if "runs" in command.full]


def run(command, tmp_path, *arguments):
    """python experiments.py COMMAND --out tmp_path ..., in this process."""
    experiments.main([command, "--out", str(tmp_path), *map(str, arguments)])


def refused(arguments, capsys):
    """What the command line says to bad options."""
    with pytest.raises(SystemExit) as stop:
        experiments.main([str(word) for word in arguments])
    assert stop.value.code == 2
    *usage, sentence = capsys.readouterr().err.strip().splitlines()
    return sentence


# The command line ---------------------------------------------------------------------------------

def test_without_a_command_it_prints_one_screen(capsys):
    experiments.main([])
    listing = capsys.readouterr().out
    assert listing.count("\n") <= 26
    assert all(f"\n  {name} " in listing for name in experiments.COMMANDS)
    assert all(len(line) <= 100 for line in listing.splitlines())


@pytest.mark.parametrize("name, command", experiments.COMMANDS.items())
def test_an_option_that_a_command_does_not_take_is_refused(name, command, capsys, tmp_path):
    values = {"steps": 10 ** 4, "runs": 3, "datasets": "statlog", "algorithms": "linear",
              "csv": tmp_path / "x.csv"}
    for option in [option for option in values if option not in command.full]:
        said = refused([name, f"--{option}", values[option]], capsys)
        assert said.endswith(f"--{option}: {name} does not take it")


@pytest.mark.parametrize("name, command", experiments.COMMANDS.items())
def test_a_value_that_a_command_cannot_use_is_refused(name, command, capsys):
    for option, least in {"steps": 1, "runs": 1, **command.least}.items():
        if option in command.full:
            said = refused([name, f"--{option}", least - 1], capsys)
            assert said.endswith(f"--{option}: expected at least {least}, got {least - 1}")
    for option in ("datasets", "algorithms"):
        if option in command.full:
            said = refused([name, f"--{option}", "iris"], capsys)
            assert f"--{option}: expected some of" in said and said.endswith("got iris")


@pytest.mark.parametrize("arguments, word", [
    (["nonsense"], "COMMAND"), (["table", "--jobs", "0"], "--jobs"),
    (["table", "--seed", "-1"], "--seed"), (["table", "--fresh", "--verify"], "--verify"),
    (["table", "--csv", "x.csv", "--datasets", "adult"], "--csv"),
    (["results", "--fresh"], "--fresh"), (["forgetting", "--steps", "60"], "850"),
    (["sanity", "--verify"], "--verify"), (["forgetting", "--datasets", "adult"], "--datasets")])
def test_bad_options_are_refused_in_one_sentence(arguments, word, capsys):
    assert word in refused(arguments, capsys)


@pytest.mark.parametrize("name, command", experiments.COMMANDS.items())
def test_quick_is_within_what_a_command_takes(name, command):
    assert set(command.quick) <= set(command.full) and set(command.least) <= set(command.full)
    for option, least in command.least.items():
        assert command.quick[option] >= least
    for option in ("datasets", "algorithms"):
        assert set(command.quick.get(option, ())) <= set(command.full.get(option, ()))


def test_names_are_separated_by_commas_or_spaces():
    for words in (["carried,linear"], ["carried", "linear"], ["carried,", "linear"]):
        o = options.parse(["table", "--algorithms", *words, "--datasets", "statlog,adult"],
                          experiments.COMMANDS)
        assert o.algorithms == ("linear", "carried") and o.datasets == ("adult", "statlog")


def test_results_go_where_nothing_is_checked_in():
    o = options.parse(["table"], experiments.COMMANDS)
    assert o.out == HERE / "figures" / "own" and o.runs == 50 and o.algorithms == ALGORITHMS
    o = options.parse(["table", "--quick", "--runs", "3"], experiments.COMMANDS)
    assert o.out == HERE / "figures" / "quick" and o.runs == 3 and o.datasets == ("statlog",)
    ignored = (HERE / ".gitignore").read_text(encoding="utf-8").split()
    assert {"figures/own/", "figures/quick/"} <= set(ignored)


def test_options_cannot_be_changed_and_have_a_help_each():
    o = options.Options("table")
    with pytest.raises(AttributeError):
        o.runs = 3
    assert all(one.metadata["help"] for one in options.fields(options.Options)[1:])


def test_experiments_is_imported_once():
    code = "import sys, runpy; sys.argv = ['x']; runpy.run_path('experiments.py', " \
           "run_name='__main__'); assert 'experiments' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=HERE, check=True, capture_output=True)


# Each command, at toy size ------------------------------------------------------------------------

TOY = {  # options that make a command play as little as it can
    "forgetting": ["--steps", 850, "--runs", 2, "--algorithms", "linear,both-priors,no-prior"],
    "table": ["--steps", 60, "--runs", 2, "--datasets", "statlog,adult"],
    "wheel": ["--steps", 20, "--runs", 1],
    "sanity": ["--quick", "--runs", 1],
    "drift": ["--steps", 60, "--runs", 2, "--datasets", "statlog"],
    "exploration": ["--steps", 30, "--runs", 2, "--datasets", "statlog,wheel"],
    "calibration": ["--quick", "--steps", 1200, "--runs", 1, "--datasets", "mushroom"],
    "ablation": ["--quick", "--steps", 40, "--runs", 2],
    "complexity": ["--quick", "--steps", 1000],
    "matching": ["--quick", "--datasets", "mushroom"],
    "speed": ["--quick", "--steps", 60],
    "picture": ["--quick", "--runs", 1],
    "released": ["--steps", 60, "--runs", 1, "--datasets", "statlog"],
    "peers": ["--steps", 40, "--runs", 1, "--datasets", "statlog"],
}


@pytest.mark.parametrize("name", TOY)
@pytest.mark.usefixtures("inline")
def test_every_command_tells_and_draws_and_tells_the_same_again(name, tmp_path, capsys):
    """The second time from the results file alone; the picture is the same to the last pixel."""
    run(name, tmp_path, *TOY[name])
    told = (tmp_path / f"{name}.txt").read_text(encoding="utf-8")
    assert told.strip() in capsys.readouterr().out
    assert not re.search(r"\bnan\b|\binf\b", told)
    pictures = {path: path.read_bytes() for path in tmp_path.glob("*.png")}
    assert all(data[:4] == PNG for data in pictures.values())
    assert bool(pictures) == (experiments.COMMANDS[name].draw is not None)
    run(name, tmp_path, *TOY[name])
    out, err = capsys.readouterr()
    assert " 0 to play" in err or "read from" in err
    assert (tmp_path / f"{name}.txt").read_text(encoding="utf-8") == told
    assert {path: path.read_bytes() for path in tmp_path.glob("*.png")} == pictures


def test_every_command_has_a_toy():
    """amazon has a test of its own below, film in test_film.py; results is tested on pages."""
    assert set(TOY) | {"amazon", "film", "results"} == set(experiments.COMMANDS)


@pytest.mark.parametrize("name", [name for name in TOY
                                  if "algorithms" in experiments.COMMANDS[name].full])
@pytest.mark.usefixtures("inline")
def test_any_one_algorithm_is_told(name, tmp_path):
    toy = TOY[name]
    if "--algorithms" in toy:
        toy = toy[:toy.index("--algorithms")]
    for algorithm in experiments.COMMANDS[name].full["algorithms"]:
        if name == "forgetting" and algorithm not in ("linear", "perfect-prior"):
            continue                                  # 850 steps are long
        run(name, tmp_path, *toy, "--runs", 1, "--algorithms", algorithm)


@pytest.fixture
def reviews(tmp_path, monkeypatch, no_cache):
    """A file of 60 reviews of phones, of which a third is commonest."""
    rows = [f'phone,brand,1,{1 + k % 3 + (k % 4 == 0)},"great phone number {k}",0'
            for k in range(60)]
    header = "Product Name,Brand Name,Price,Rating,Reviews,Review Votes"
    (tmp_path / "Amazon_Unlocked_Mobile.csv").write_text("\n".join([header, *rows]) + "\n",
                                                         encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("inline")
def test_amazon_tells_from_the_results_file_alone(reviews, tmp_path, capsys):
    toy = ["--quick", "--steps", 12, "--runs", 2, "--algorithms", "neural-linear,recommended"]
    run("amazon", tmp_path / "out", *toy, "--data-dir", reviews)
    told = (tmp_path / "out" / "amazon.txt").read_text(encoding="utf-8")
    assert "recommended > best ε" in told and "both-priors" not in told
    (reviews / "Amazon_Unlocked_Mobile.csv").unlink()
    run("amazon", tmp_path / "out", *toy)
    assert (tmp_path / "out" / "amazon.txt").read_text(encoding="utf-8") == told
    capsys.readouterr()
    with pytest.raises(SystemExit, match="nothing to tell"):
        run("amazon", tmp_path / "else", *toy)
    assert "kaggle" in capsys.readouterr().err


@pytest.mark.usefixtures("inline")
def test_table_of_own_data(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [f"{x[0]},{x[1]},{'red' if x[0] > 0 else 'blue'}" for x in rng.normal(size=(300, 2))]
    (tmp_path / "mine.csv").write_text("\n".join(["a,b,color", *rows]) + "\n", encoding="utf-8")
    run("table", tmp_path, "--csv", tmp_path / "mine.csv", "--runs", 1, "--steps", 200,
        "--algorithms", "linear")
    found = re.search(r"Mine +200 +1 +(\d+)\n", capsys.readouterr().out)
    assert int(found[1]) > 140
    assert "nowhere.csv" in refused(["table", "--csv", tmp_path / "nowhere.csv"], capsys)


# What is told -------------------------------------------------------------------------------------

MEANS = {"neural-linear": 300.0, "perfect-prior": 200.0, "carried": 196.0, "both-priors": 100.0,
         "mu-prior": 10.0, "recommended": 400.0, "greedy": 390.0}


def made_up(runs=8, **means):
    """Lines of two data sets: a difficulty of the run, and what an algorithm adds."""
    rng, lines = np.random.default_rng(0), []
    for dataset in ("statlog", "adult"):
        difficulty = 100 * rng.normal(size=runs)
        for name in ALGORITHMS:
            reward = 4000 + means.get(name, 0.0) + difficulty + rng.normal(size=runs)
            lines += [{"dataset": dataset, "algorithm": name, "run": k, "reward": reward[k],
                       "dim": 9, "arms": 7, "steps": 5000, "optimal": 5000, "uniform": 1000,
                       "best_arm": 3000, "explored": 0.1, "config": f"{dataset} {name}",
                       "seconds": 360.0} for k in range(runs)]
    return lines


def rewards_of(**means):
    return report.grouped(made_up(**means), "dataset", "algorithm")


def test_the_papers_numbers_are_those_of_the_paper():
    path = HERE.parent / "shared" / "paper.tex"
    if not path.exists():
        pytest.skip("the paper's text is not beside the repository")
    latex = path.read_text(encoding="utf-8")
    for name, row in paper.TABLE.items():
        line = next(part for part in latex.split("\\rule{0pt}{2.6ex}")
                    if part.strip().lower().startswith(name))
        numbers = re.findall(r"([\d.]+)\s*\$\\pm\$\s*([\d.]+)", line)
        assert [(float(m), float(s)) for m, s in numbers] == [(float(m), float(s)) for m, s in row]
    for numbers in (*paper.WHEEL.values(), paper.AMAZON):
        for mean, sd in numbers.values():
            assert re.search(rf"{mean}0? *\$\\pm\$ *{sd}", latex)


def test_the_table_stands_beside_the_papers():
    told = experiments.tell_table(made_up(**MEANS))
    assert re.search(r"Statlog +5000 +8 ", told)
    assert re.search(r"in the paper +5000 +50 +4483 ± 353 .* 4623 ± 276", told)


def test_hours_are_summed_and_extrapolated():
    """144 runs of 0.1 h; 50 runs of each of 18 would take 90."""
    lines = made_up()
    assert re.match(r"144 runs took 14\.4 hours .* 90\.0 hours \(extrapolated\)",
                    experiments.hours_text(lines))
    assert "extrapolated" not in experiments.hours_text(made_up(runs=50))


def test_two_kinds_of_forgetting_are_told_apart():
    """Paired by run its difficulty (sd 100) cancels: within 5 standard errors of what is put in."""
    rewards = report.whole(rewards_of(**MEANS))
    assert list(rewards) == ["statlog", "adult"]
    for own in rewards.values():
        network, posterior = report.kinds(own)
        assert abs(network.mean() - 100) < 5 * np.sqrt(2 / 8)
        assert abs(posterior.mean() - 200) < 5 * np.sqrt(2 / 8)
        theirs, error = report.won_back(own, "both-priors")
        assert abs(theirs - 0.5) < 5 * 0.007 and 0 < error < 0.02
        assert abs(report.won_back(own, "carried")[0] - 0.98) < 5 * 0.007
        mixed_up = own | {"no-prior": own["no-prior"][::-1]}    # planted: runs that are no pairs
        assert report.won_back(mixed_up, "both-priors")[1] > 5 * error


def test_kinds_need_three_algorithms_and_two_runs():
    rewards = rewards_of(**MEANS)
    del rewards["adult"]["no-prior"]
    assert list(report.whole(rewards)) == ["statlog"]
    assert report.whole(report.grouped(made_up(runs=1), "dataset", "algorithm")) == {}


def test_gains_are_paired_with_verdicts_of_one_family():
    found = dict(experiments.gains(experiments.TABLE, rewards_of(**MEANS)))
    for worse, expected in (("no-prior", "supported"), ("neural-linear", "not supported")):
        verdicts = [verdict for _, verdict in found["both-priors", worse].values()]
        assert verdicts == [expected, expected]
    difference, _ = found["both-priors", "no-prior"]["statlog"]
    assert abs(difference.mean() - 100) < 5 * np.sqrt(2 / 8)
    assert len(found) == len(experiments.TABLE)
    only = {"statlog": {"linear": np.ones(3)}}
    assert experiments.gains(experiments.TABLE, only) == []


def test_a_claim_is_held_to_the_data_sets_that_the_paper_names():
    """Full memory is beaten on Adult, where the paper's is not, and not on Statlog, where it is."""
    rewards = rewards_of(**MEANS)
    rewards["adult"]["both-priors"] = rewards["adult"]["neural-linear"] + 5 + np.arange(8) / 8
    found = {pair: experiments.found_in(*pair, sets)
             for pair, sets in experiments.gains(experiments.TABLE, rewards)}
    assert found["both-priors", "neural-linear"] == (
        "not supported: on 0 of the 1 data sets where the paper has it, and on 1 other; "
        "loses on 1 (Statlog)")
    assert found["both-priors", "linear"].startswith(
        "supported: on 1 of the 1 nonlinear data sets")
    assert experiments.found_in("carried", "no-prior", {"adult": (None, "supported")}) == (
        "gains on 1 of 1 data sets, loses on 0")


def test_scores_are_normalized_and_ranked():
    """no-prior scores 0.75 of what is possible, beaten by full memory in every run."""
    told = experiments.summary_text(made_up(**MEANS))
    score, low, high, beats = re.search(
        r"no-prior +([\d.]+) +([\d.]+) to ([\d.]+) +(\d+)% ", told).groups()
    assert float(low) <= float(score) <= float(high) and abs(float(score) - 0.75) < 0.03
    assert int(beats) == 0 and re.search(r"recommended .* 100% +100% to 100%", told)


def test_claims_have_slack_and_the_papers_number():
    x = 100 + np.arange(6.0)
    claims = [report.Claim("a", x, x + 1, 0.02, -1.5), report.Claim("b", x, x + 5 + x / 1e3)]
    told = report.claims_text("claims", claims)
    assert re.search(r"a +-1\.0 ± 0\.0 +-1\.5 +supported", told)
    assert re.search(r"b +-5\.\d ± 0\.0 +not supported", told)


def forgetting_lines(**regret):
    """Lines of three runs with this regret per step."""
    return [{"dataset": "statlog", "algorithm": name.replace("_", "-"), "run": k, "steps": 2000,
             "reward": 2000 - x.sum(), "regret": (x * (1 + k / 10)).tolist(), "explored": 0.1}
            for name, x in regret.items() for k in range(3)]


def test_peaks_after_retraining_are_seen():
    """Regret 0.1 per step, 0.2 in the 50 steps after each retraining: a ratio of 2. Of the steps
    around the first retraining, where all are bad, nothing is counted."""
    L = nlts.Config.L
    flat = np.full(5 * L, 0.1)
    flat[:2 * L - 100] = 1.0
    peaks = flat.copy()
    for start in range(2 * L, 5 * L, L):
        peaks[start:start + 50] = 0.2
    told = experiments.tell_forgetting(forgetting_lines(carried=flat, no_prior=peaks))
    assert re.search(r"carried .* 1\.00 ± 0\.00\n", told)
    assert re.search(r"no-prior .* 2\.00 ± 0\.00\n", told)


def test_amazon_compares_with_the_papers_epsilon_and_with_the_best():
    rng, lines = np.random.default_rng(0), []
    for algorithm, variant, mean in (("ε-greedy", "ε = 0.01", 50), ("ε-greedy", "ε = 0.1", 0),
                                     ("neural-linear", "", 80), ("both-priors", "", 20)):
        lines += [{"dataset": "amazon", "algorithm": algorithm, "variant": variant, "run": k,
                   "steps": 5000, "best_arm": 2500, "explored": 0.1,
                   "reward": 1000 + mean + rng.normal()} for k in range(5)]
    told = experiments.tell_amazon(lines)
    assert "the best ε of those played: ε = 0.01" in told and "earns 2500" in told
    assert re.search(r"both-priors > ε = 0\.1 +\+\d.* \+180\.0 +supported", told)
    assert re.search(r"both-priors > best ε +-\d+\.\d ± \d\.\d +not supported", told)
    assert re.search(r"as good as neural-linear \(within 2% of its reward\) +-\d.* -11\.7 +not",
                     told)


def test_the_wheel_stands_beside_the_papers():
    lines = [{"dataset": "wheel", "algorithm": name, "variant": variant, "delta": delta, "run": k,
              "steps": 4000, "reward": 700.0 + k + (100 if variant else 0), "explored": 0.1}
             for delta in (0.5, 0.3) for name, variant in (("linear", ""), ("both-priors", ""),
                                                           ("both-priors", "b⁰ = 0.6"))
             for k in range(3)]
    told = experiments.tell_wheel(lines)
    assert "always playing the safe arm earns 800" in told
    assert re.search(r"in the paper +737\.44 ± 3\.04 +899\.72 ± 12\.79\n", told)
    assert re.search(r"δ = 0\.5: both-priors > linear +\+0\.0 ± 0\.0 +\+162\.3 +unclear", told)
    assert re.search(r"δ = 0\.3: both-priors, b⁰ = 0\.6 > linear +\+100\.0 .* +supported", told)


# Pictures -----------------------------------------------------------------------------------------

def test_every_algorithm_has_a_style_of_its_own():
    """Told apart without color, by line and marker, and by the lightness of the color."""
    assert set(STYLE) == set(ALGORITHMS)
    for key in ("color", "linestyle", "marker"):
        assert len({str(style[key]) for style in STYLE.values()}) == len(STYLE)


def test_kinds_are_drawn_for_each_data_set():
    labels = {name: recipe.label for name, recipe in RECIPES.items()}
    figure = report.draw_kinds(rewards_of(**MEANS), labels, "Kinds")
    left, right = figure.axes
    names = [tick.get_text() for tick in left.get_yticklabels()]
    assert [name.split()[0] for name in names] == ["Statlog", "Adult"]
    assert re.search(r"\(\+(19|20)\d\)", names[0])    # how small a denominator is
    assert len(left.patches) == 4 and len(right.containers) == 2


# Appendix C ---------------------------------------------------------------------------------------

def test_the_sanity_check_can_fail(monkeypatch):
    """Planted: the posterior that is carried over still contains the buffer, which counts twice."""
    assert np.max(experiments.prior_errors(np.random.default_rng(0), 8, 16, 0.0)[0]) < 1e-10
    monkeypatch.setattr(nlts.BayesianLinearRegression, "without", lambda arm, E, r: arm)
    assert np.min(experiments.prior_errors(np.random.default_rng(0), 8, 16, 0.0)[0]) > 1e-3


def test_prior_errors_vanish_where_the_assumptions_hold_and_grow_where_not():
    def errors(n, eps):
        return np.mean([experiments.prior_errors(np.random.default_rng(k), 8, n, eps)
                        for k in range(5)], axis=0)

    exact, few, bent, strongly = errors(16, 0.0), errors(4, 0.0), errors(40, 0.1), errors(40, 1.0)
    assert exact.shape == (4, 2) and exact[0].max() < 1e-10 and exact[1:].min() > 1e-4
    assert few[0].min() > 1e-3 and (bent[0] < strongly[0]).all()


# Pages --------------------------------------------------------------------------------------------

def test_blocks_are_filled_from_their_files(tmp_path):
    (tmp_path / "a.txt").write_text("1 ± 2\n\n3 ± 4\n", encoding="utf-8")
    (tmp_path / "b.md").write_text("| x |\n", encoding="utf-8")
    page = tmp_path / "README.md"
    (tmp_path / "c.png").write_bytes(b"")
    page.write_text("x\n<!-- a.txt -->\ntyped by hand\n<!-- end -->\n<!-- b.md -->\n<!-- end -->\n"
                    "<!-- gone.txt -->\nstays\n<!-- end -->\n<!-- c.png: a line -->\n<!-- end -->\n"
                    "<!-- gone.png: a line -->\n<!-- end -->\n"
                    "<!-- a.txt: first part -->\n<!-- end -->\n", encoding="utf-8")
    assert pages.filled(page) == (
        "x\n<!-- a.txt -->\n```\n1 ± 2\n\n3 ± 4\n```\n<!-- end -->\n"
        "<!-- b.md -->\n| x |\n<!-- end -->\n"
        "<!-- gone.txt -->\n*Not measured yet.*\n<!-- end -->\n"
        "<!-- c.png: a line -->\n![a line](c.png)\n<!-- end -->\n"
        "<!-- gone.png: a line -->\n*Not measured yet.*\n<!-- end -->\n"
        "<!-- a.txt: first part -->\n```\n1 ± 2\n```\n<!-- end -->\n")


def test_the_summary_has_the_papers_number():
    summary = experiments.table_pages(made_up(**MEANS))["summary.md"]
    row = next(line for line in summary.splitlines() if line.startswith("| Statlog"))
    assert "4825 ± 305" in row and row.count("|") == 8


@pytest.mark.parametrize("page", ["README.md", "figures/README.md"])
def test_the_pages_hold_what_the_results_files_say(page):
    """`python experiments.py results` would change nothing: no number is typed by hand."""
    path = HERE / page
    assert pages.filled(path) == path.read_text(encoding="utf-8")
    assert pages.BLOCK.findall(path.read_text(encoding="utf-8"))
