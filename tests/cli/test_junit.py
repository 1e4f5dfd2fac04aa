"""The findings as JUnit XML: what fails there is what --fail-on names."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

import numpy as np
import pytest
from click.testing import CliRunner

from gonio.cli import main


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    W = np.random.default_rng(0).normal(size=(40, 4))
    labels = [f"label {i}" for i in range(40)]
    labels[5] = 'a<b>&"\x01\ud800\ufffe]]>'
    path = tmp_path_factory.mktemp("junit") / "m.npz"
    W[5] = W[[1, 2, 3]].mean(axis=0)
    np.savez(path, W=W, link="softmax", labels=np.array(labels))
    return path


def run(*arguments, code=0):
    done = CliRunner().invoke(main, [str(a) for a in arguments])
    assert done.exit_code == code, done.output
    return done.output


def suite_of(path):
    suite = Xml.parse(path).getroot()
    for count, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
        assert int(suite.get(count)) == len(list(suite.iter(tag)))
    return suite


def test_what_fail_on_names_fails_with_labels_and_the_command_that_checks_it(model, tmp_path):
    run("audit", model, "--junit", tmp_path / "a.xml", "--fail-on", "never-wins", code=1)
    suite = suite_of(tmp_path / "a.xml")
    failure = suite.find("testcase[@name='never-wins']/failure")
    assert "of 40 labels can never win" in failure.get("message")
    assert "\nlabels: " in failure.text
    assert "a<b>&" in failure.text
    assert "\ncheck: gonio can-win" in failure.text
    assert {c.get("classname").split(".")[1] for c in suite} == {"audit"}
    assert len({c.get("name") for c in suite}) == len(suite)


def test_without_fail_on_a_warning_is_skipped_with_its_words(model, tmp_path):
    assert "written" in run("audit", model, "--junit", tmp_path / "a.xml")
    suite = suite_of(tmp_path / "a.xml")
    assert suite.get("failures") == "0"
    assert suite.find("testcase[@name='never-wins']/skipped").get("message").startswith("warning: ")
    assert suite.find("testcase[@name='link']/system-out").text == "The link is softmax"


def test_a_check_is_written_the_same_way(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 4))
    X[9] = X[8]
    np.save(tmp_path / "x.npy", X)
    run("check", tmp_path / "x.npy", "--junit", tmp_path / "c.xml", "--fail-on", "duplicates", code=1)
    assert suite_of(tmp_path / "c.xml").find("testcase[@name='duplicates']/failure") is not None


def test_the_terminal_holds_one_of_them(model):
    assert Xml.fromstring(run("audit", model, "--junit", "-").partition("<?xml")[2].partition("?>")[2]) is not None
    assert "both ask for the terminal" in run("audit", model, "--junit", "-", "--json", "-", code=2)
