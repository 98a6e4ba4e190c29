import jsonschema
import msgspec
import pytest

from antiphon.http.app import make_api_app
from antiphon.http.openai.openapi import make_document, mounted
from antiphon.http.web.routes import ENDPOINTS
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.testing.accounts import ScriptedAccounts
from antiphon.testing.chat import ScriptedChat
from antiphon.testing.responses import ResponseShelf, ScriptedResponses
from antiphon.testing.telemetry import RecordingTelemetry


class _NoContents:
    """Nothing is asked of it."""


@pytest.fixture(scope="module")
def app():
    shelf = ResponseShelf()
    return make_api_app(
        ScriptedChat(),
        HttpSettings,
        GenerationSettings,
        RecordingTelemetry(),
        accounts=ScriptedAccounts(),
        responses=ScriptedResponses(shelf),
        store=shelf,
        contents=_NoContents(),
        searching=_NoContents(),
    )


@pytest.fixture(scope="module")
def document(app):
    return msgspec.json.decode(msgspec.json.encode(make_document(mounted(app), version="1")))


def test_every_route_is_described_and_everything_described_is_a_route(app):
    routes = {
        (rule.rule, method)
        for rule in app.url_map.iter_rules()
        for method in rule.methods - {"HEAD", "OPTIONS"}
        if rule.endpoint not in ENDPOINTS
    }

    assert routes == {(each.rule, each.method) for each in mounted(app)}


def test_no_two_operations_have_one_name(app):
    names = [each.name for each in mounted(app)]

    assert len(names) == len(set(names))


def test_every_reference_leads_somewhere(document):
    schemas = document["components"]["schemas"]

    def walk(value):
        match value:
            case {"$ref": str(target)}:
                assert target.removeprefix("#/components/schemas/") in schemas
            case dict():
                for inner in value.values():
                    walk(inner)
            case list():
                for inner in value:
                    walk(inner)

    walk(document)


def test_every_schema_is_one(document):
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_variable_of_a_path_is_a_parameter(document):
    for path, methods in document["paths"].items():
        for operation in methods.values():
            declared = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
            assert declared == {part[1:-1] for part in path.split("/") if part.startswith("{")}


def test_what_takes_a_body_tells_what_may_be_wrong_with_it(document):
    operation = document["paths"]["/v1/conversations/{conversation_id}/items"]["post"]

    assert operation["requestBody"]["required"] is True
    assert {"200", "400", "401", "404", "413", "415"} <= set(operation["responses"])


def test_items_of_a_conversation_are_described_by_the_structs_that_read_them(document):
    schema = document["components"]["schemas"]["CreateItems"]["properties"]["items"]

    kinds = {each["$ref"].rpartition("/")[2] for each in schema["items"]["anyOf"]}
    assert {"MessageItem", "FunctionCallItem", "ReasoningItem"} <= kinds
    assert document["components"]["schemas"]["MessageItem"]["required"] == ["role", "content"]


def test_vector_stores_and_their_filters_are_described(document):
    schemas = document["components"]["schemas"]

    assert "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/files" in document["paths"]
    filters = schemas["SearchVectorStore"]["properties"]["filters"]
    assert {"ComparisonFilter", "CompoundFilter", "FileSearchTool"} <= schemas.keys()
    assert "anyOf" in str(filters)


async def test_the_document_is_served_to_everybody(api):
    from antiphon.errors import Unauthenticated

    api.accounts.error = Unauthenticated("No key.")

    answer = await api.client.get("/openapi.json")

    assert answer.status_code == 200
    assert answer.json()["openapi"] == "3.1.0"
    assert "/v1/files/{file_id}/content" in answer.json()["paths"]
