"""Tests of what `GET /v1/model` says."""

import msgspec
import pytest

from tacit.errors import BadMessage
from tacit.service.model_document import FORMAT, Content, ModelDocument, Queries

SHA = "ab" * 32
CONTENT = Content(f"/v1/candidates/{SHA}", SHA, 12)
QUERIES = Queries("krr", "0f" * 16, 22, 100, CONTENT, [{"epsilon": 2.0}])
DOCUMENT = ModelDocument(
    FORMAT, "0.1.0", 20, {"method": {"name": "gram"}}, CONTENT, QUERIES, True, []
)


@pytest.mark.parametrize(
    "document", [DOCUMENT, msgspec.structs.replace(DOCUMENT, queries=None)]
)
def test_what_is_decoded_is_what_was_encoded(document):
    assert ModelDocument.decode(document.encode()) == document


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "no model is described"),
        (b"[]", "no model is described"),
        (b'{"format": 1, "tacit": "\xb0"}', "no model is described"),
        (b'{"format": 99}', "format 99; this program reads 1"),
        (b'{"format": 1}', "missing required field"),
        (DOCUMENT.encode()[:-1] + b',"more":1}', "unknown field"),
        (DOCUMENT.encode().replace(b'"items":20', b'"items":"20"'), "items"),
        (DOCUMENT.encode().replace(SHA.encode(), b"../../home"), "matching regex"),
        (
            DOCUMENT.encode().replace(b"/v1/candidates", b"//x"),
            "matching regex",
        ),
        (DOCUMENT.encode().replace(b'"bytes":12', b'"bytes":-1'), "bytes"),
        (b'{"format":1,"model":' + b"[" * 10**5, "no model is described"),
    ],
)
def test_what_is_no_such_document_is_refused(text, said):
    with pytest.raises(BadMessage, match=said):
        ModelDocument.decode(text)
