"""The command `gonio info`, run as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gonio

GONIO = Path(sys.executable).parent / "gonio"


def run(*arguments, **options):
    return subprocess.run([GONIO, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options)


@pytest.fixture
def model(tmp_path):
    W = np.array([[1, 0.5], [0.5, 1], [-1, 0.4], [0, 0], [0.5, 1]])
    path = tmp_path / "m.npz"
    np.savez(path, W=W, b=np.zeros(5), labels=np.array(["dog", "cat", "fish", "<script>", "\x1b[31m‮x"]))
    return path


def test_info_says_what_was_read_and_how_it_was_decided(model):
    done = run("info", model)
    assert done.returncode == 0
    assert done.stderr == ""
    for said in (
        "5 labels x 2, stored as float64", "W, the only two-dimensional float tensor", "assumed: nothing in the file tells",
        "all inputs", "b, by its name", "soft-cap", "2 of 2; of the differences between rows 2", "0 to 1.118",
        "1: '<script>'", "2 labels in 1 group;", "bytes read", "padded     none",
    ):  # fmt: skip
        assert said in done.stdout, said
    assert "\x1b" not in done.stdout
    assert "‮" not in done.stdout


def test_the_rank_is_that_of_the_numbers_in_float64(tmp_path):
    W = np.random.default_rng(0).standard_normal((600, 40)).astype(np.float32)
    W[:, [3, 17]] *= np.float32(1e-33)  # two columns that no other number can be told from zero beside
    np.save(tmp_path / "m.npy", W)
    said = json.loads(run("info", tmp_path / "m.npy", "--link", "cosine", "--json", "-").stdout)
    assert said["rank"] == np.linalg.matrix_rank(W.astype(np.float64)) == 38
    assert said["rank_of_differences"] == 38
    done = run("compare", tmp_path / "m.npy", tmp_path / "m.npy", "--link", "cosine")
    assert done.returncode == 0, done.stdout


def test_info_as_json(model):
    done = run("info", model, "--json", "-", "--link", "sigmoid", "--inputs", "box:-1,1")
    said = json.loads(done.stdout)
    assert said["link"] == "sigmoid"
    assert said["labels"] == 5
    assert said["rank"] == 2
    assert said["twins"] == [[1, 4]]
    assert said["zero_rows"] == [3]
    assert said["inputs"] == "box -1 <= x <= 1"
    assert said["decided"]["link"] == "given by the caller"


def test_info_reads_factor_models(tmp_path):
    np.save(tmp_path / "u.npy", np.eye(4))
    np.save(tmp_path / "i.npy", np.ones((6, 4)))
    done = run("info", "--users", tmp_path / "u.npy", "--items", tmp_path / "i.npy")
    assert done.returncode == 0
    assert "4 observed embeddings" in done.stdout
    assert "penalty on the product" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["absent.npz"], "there is no file absent.npz"),
        ([], "give one model"),
        (["m.npz", "--tensor", "V"], "no tensor 'V'; it has W (5x2 float64)"),
        (["m.npz", "--labels", "none.txt"], "labels file none.txt cannot be read"),
        (["m.npz", "--inputs", "weird"], "'weird' is not understood"),
        (["--users", "u.npy"], "both --users and --items"),
        (["m.npz", "--users", "u.npy", "--items", "i.npy"], "give one model"),
        (["x.keras"], "Keras"),
        (["x.tflite"], "TFLite"),
        (["x.pkl"], "a pickle can run code"),
        (["x.joblib"], "joblib.load it yourself"),
        (["x.what"], "of no kind that gonio reads"),
        (["."], "is no checkpoint"),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_2(arguments, said, model):
    for name in ("x.keras", "x.tflite", "x.pkl", "x.joblib", "x.what"):
        (model.parent / name).write_bytes(
            b"\x80\x04 whatever \xff\xfe" * 3 if name in ("x.pkl", "x.joblib") else b"\x01\x02\xff\xfe" * 9
        )
    done = run("info", *arguments, cwd=model.parent)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("gonio: ")


def test_unknown_options_exit_with_2_and_a_pipe_that_closes_is_no_crash(model):
    assert run("info", model, "--link", "sofmax").returncode == 2
    assert run("nonsense").returncode == 2
    assert gonio.__version__ in run("--version").stdout
    done = subprocess.run(f"{GONIO} info {model} | true", shell=True, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr


def test_padded_rows_are_told(tmp_path):
    from safetensors.numpy import save_file

    save_file({"lm_head.weight": np.random.default_rng(0).standard_normal((16, 3))}, tmp_path / "model.safetensors")
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 16}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "vocab.json").write_text(json.dumps({f"t{i}": i for i in range(12)}))
    done = run("info", tmp_path)
    assert "4: rows 12 to 15" in done.stdout
    assert "4 of 16 rows have no token in vocab.json" in done.stdout
