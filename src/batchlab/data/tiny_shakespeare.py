"""tiny_shakespeare: 1,115,394 characters of Shakespeare's plays; a token is a character.

The first 90 % of the characters train, the next 5 % validate, the last 5 % test. Each part is cut every 64 characters;
its last piece is filled up. Tokens 3 to 67 are the 65 characters in the order of Unicode; END does not occur.
"""

from __future__ import annotations

from batchlab.data.base import Dataset, DatasetFacts, Examples
from batchlab.data.files import DataFile, Reader
from batchlab.data.token_cache import pieces
from batchlab.data.vocabulary import NUM_SPECIAL

NUM_TOKENS = 64

TINY_SHAKESPEARE = DatasetFacts(
    name="tiny_shakespeare",
    train_examples=15_686,
    val_examples=872,
    test_examples=872,
    input_shape=(NUM_TOKENS,),
    num_classes=NUM_SPECIAL + 65,
    metrics=("cross_entropy_error",),
    task="language_model",
    source="Karpathy, char-rnn, of the plays of Shakespeare; text in the public domain.",
    files=(
        DataFile(
            name="input.txt",
            folders=("tiny-shakespeare", "tiny_shakespeare"),
            num_bytes=1_115_394,
            sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
            urls=("https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",),
        ),
    ),
)


def load(read: Reader) -> Dataset:
    """Return tiny_shakespeare; `read` gives the content of its file."""
    text = read(TINY_SHAKESPEARE.files[0]).decode("utf-8")
    token_of = {character: token for token, character in enumerate(sorted(set(text)), start=NUM_SPECIAL)}
    num_classes = NUM_SPECIAL + len(token_of)

    def split(part: str) -> Examples:
        rows = pieces([token_of[character] for character in part], NUM_TOKENS, num_classes)
        return Examples(rows, rows)

    train_end, val_end = len(text) * 90 // 100, len(text) * 95 // 100
    return Dataset(
        TINY_SHAKESPEARE.name,
        train=split(text[:train_end]),
        val=split(text[train_end:val_end]),
        test=split(text[val_end:]),
        num_classes=num_classes,
        task="language_model",
    )
