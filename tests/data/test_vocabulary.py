from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchlab.core.tokens import END, PADDING, START
from batchlab.data import vocabulary
from batchlab.data.vocabulary import SMALLEST_SIZE, decode, encode, fingerprint, load_or_train, train_vocabulary
from batchlab.errors import DataError

SENTENCES = ["the cat sat on the mat", "the dog sat on the log"]
ORIGINS = [("pets.txt", 46, 0)]
SMALL = train_vocabulary(SENTENCES, 280)


def test_special_tokens_have_the_numbers_that_models_know():
    assert [SMALL.token_to_id(name) for name in ("<padding>", "<start>", "<end>")] == [PADDING, START, END]


def test_a_pair_that_is_frequent_is_one_token_and_a_sentence_ends_with_end():
    """ " the" and "the" are merged, being seen four times."""
    tokens = encode(SMALL, ["the the"])[0]

    assert [SMALL.id_to_token(token) for token in tokens] == ["the", "Ġthe", "<end>"]


def test_real_sentences_come_back_as_they_were(shared_data):
    lines = (shared_data / "lm1b-sample" / "1b_benchmark.test.tokens").read_text("utf-8").split("\n")[:2000]
    tokenizer = train_vocabulary(lines[:500], 1000)

    encoded = encode(tokenizer, lines)

    assert [decode(tokenizer, tokens) for tokens in encoded] == lines
    assert tokenizer.get_vocab_size() == 1000
    assert max(map(max, encoded)) < 1000


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))))
def test_any_text_comes_back_as_it_was(text):
    assert decode(SMALL, encode(SMALL, [text])[0]) == text


def test_the_name_of_a_special_token_in_a_sentence_is_plain_text():
    tokens = encode(SMALL, ["a <end> b <padding>"])[0]

    assert tokens.count(END) == 1 and tokens[-1] == END
    assert PADDING not in tokens
    assert decode(SMALL, tokens) == "a <end> b <padding>"


def test_decoding_leaves_out_special_tokens():
    assert decode(SMALL, [START, *encode(SMALL, ["the cat"])[0], PADDING, PADDING]) == "the cat"


def test_the_same_sentences_give_the_same_vocabulary_in_another_process():
    program = (
        "from batchlab.data.vocabulary import *;"
        f"learned = train_vocabulary({SENTENCES!r}, 280);"
        "print(fingerprint(learned), encode(learned, ['a cat']))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "5"}

    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == f"{fingerprint(SMALL)} {encode(SMALL, ['a cat'])}"
    assert ran.stderr == ""


def test_little_text_gives_a_vocabulary_that_is_smaller_than_asked():
    assert SMALLEST_SIZE < train_vocabulary(["ab ab"], 500).get_vocab_size() < 500


def test_a_vocabulary_holds_at_least_every_byte():
    assert train_vocabulary(SENTENCES, SMALLEST_SIZE).get_vocab_size() == SMALLEST_SIZE == 259
    with pytest.raises(ValueError, match="258 tokens: give at least 259"):
        train_vocabulary(SENTENCES, 258)


def test_only_the_first_sentences_are_learned_from(monkeypatch):
    monkeypatch.setattr(vocabulary, "MOST_SENTENCES", 1)

    assert fingerprint(train_vocabulary(SENTENCES, 280)) == fingerprint(train_vocabulary(SENTENCES[:1], 280))


def test_a_vocabulary_is_learned_once(cache):
    def unread() -> list[str]:
        raise AssertionError("learned again")

    first = load_or_train("pets", ORIGINS, 280, lambda: SENTENCES)
    again = load_or_train("pets", ORIGINS, 280, unread)

    assert fingerprint(first) == fingerprint(again) == fingerprint(SMALL)
    assert encode(again, ["<end>"]) == encode(first, ["<end>"])
    assert len(list((cache / "vocabularies").iterdir())) == 1


@pytest.mark.parametrize(
    ("origins", "size", "settings"),
    [
        ([("pets.txt", 47, 0)], 280, {}),
        ([("pets.txt", 46, 1)], 280, {}),
        ([("dogs.txt", 46, 0)], 280, {}),
        (ORIGINS, 281, {}),
        (ORIGINS, 280, {"share": 0.5}),
    ],
)
def test_other_files_sizes_or_settings_have_a_vocabulary_of_their_own(cache, origins, size, settings):
    load_or_train("pets", ORIGINS, 280, lambda: SENTENCES)
    load_or_train("pets", origins, size, lambda: SENTENCES, **settings)

    assert len(list((cache / "vocabularies").iterdir())) == 2


def test_a_kept_file_that_is_no_vocabulary_is_named(cache):
    load_or_train("pets", ORIGINS, 280, lambda: SENTENCES)
    (path,) = (cache / "vocabularies").iterdir()
    path.write_text("{")

    with pytest.raises(DataError, match=f"{path.name} is no vocabulary.* Delete it") as caught:
        load_or_train("pets", ORIGINS, 280, lambda: SENTENCES)
    assert "\n" not in str(caught.value)


def test_long_learning_is_announced(capsys):
    load_or_train("pets", [("pets.txt", 10**9, 0)], 280, lambda: SENTENCES)

    assert capsys.readouterr().err == "pets: learning a vocabulary of 280 tokens takes minutes; it is kept.\n"


def test_the_environment_is_left_as_it_was(monkeypatch):
    monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    encode(SMALL, SENTENCES)
    assert "TOKENIZERS_PARALLELISM" not in os.environ

    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    encode(SMALL, SENTENCES)
    assert os.environ["TOKENIZERS_PARALLELISM"] == "true"


def test_the_fingerprint_is_that_of_the_kept_file(cache):
    tokenizer = load_or_train("pets", ORIGINS, 280, lambda: SENTENCES)
    (path,) = (cache / "vocabularies").iterdir()

    assert hashlib.sha256(path.read_bytes()).hexdigest().startswith(fingerprint(tokenizer))
