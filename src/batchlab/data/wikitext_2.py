"""wikitext_2: good and featured articles of Wikipedia, two million words, as one running text per split.

Each line, a blank one too, ends with END, as is usual for this text; blanks around a line are taken away. The text is
encoded with sub-words learned from the training split and cut every `num_tokens` tokens; the last piece is filled up.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from batchlab.data import token_cache
from batchlab.data.base import Dataset, DatasetFacts, Examples
from batchlab.data.cache_key import Origin, kept_path
from batchlab.data.files import DataFile, Source
from batchlab.data.text_lines import decode_lines
from batchlab.data.vocabulary import fingerprint, load_or_train


def _file(name: str, num_bytes: int, sha256: str) -> DataFile:
    return DataFile(name=name, folders=("wikitext-2", "wikitext_2"), num_bytes=num_bytes, sha256=sha256)


WIKITEXT_2 = DatasetFacts(
    name="wikitext_2",
    input_shape=(64,),
    num_classes=8_000,
    metrics=("cross_entropy_error",),
    task="language_model",
    options=("train_examples", "vocabulary_size", "num_tokens"),
    source="Merity et al., Pointer Sentinel Mixture Models, 2016; text of Wikipedia, licence CC BY-SA 3.0.",
    files=(
        _file("wiki.train.tokens", 10_797_148, "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f"),
        _file("wiki.valid.tokens", 1_121_681, "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8"),
        _file("wiki.test.tokens", 1_256_449, "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0"),
    ),
)


def load(options: Mapping[str, Any], source: Source, facts: DatasetFacts = WIKITEXT_2) -> Dataset:
    """Return wikitext_2 as pieces of tokens, memory maps of the cache folder."""
    size: int = options.get("vocabulary_size", facts.num_classes)
    num_tokens: int = options.get("num_tokens", facts.input_shape[0])
    texts = {file: source.read(file) for file in facts.files}
    train_file = facts.files[0]
    tokenizer = load_or_train(facts.name, [_origin(train_file)], size, lambda: _lines(train_file, texts[train_file]))
    vocabulary = fingerprint(tokenizer)

    def split(file: DataFile) -> Examples:
        origins, name = [_origin(file)], f"{facts.name}-{file.name}"
        return token_cache.load_or_make(
            kept_path("tokens", name, ".npy", origins, vocabulary=vocabulary, num_tokens=num_tokens),
            lambda: token_cache.piece_rows(_lines(file, texts[file]), tokenizer, num_tokens),
        )

    train, val, test = map(split, facts.files)
    return Dataset(facts.name, train, val, test, size, "language_model")


def _origin(file: DataFile) -> Origin:
    return file.sha256, file.num_bytes, 0


def _lines(file: DataFile, content: bytes) -> list[str]:
    return [line.strip() for line in decode_lines(io.BytesIO(content), str(file))]
