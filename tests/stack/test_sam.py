import json

from a2a_serverless_tools.stack import sam


def test_switches_are_added_to_functions_environments_and_nothing_else_changes() -> None:
    plain = {"Type": "AWS::Serverless::Function", "Properties": {"Timeout": 5}}
    told = {"Type": "AWS::Serverless::Function", "Properties": {"Environment": {"Variables": {"A": "1", "B": "2"}}}}
    template = {"Resources": {"Plain": plain, "Told": told, "Queue": {"Type": "AWS::SQS::Queue"}}, "Outputs": {}}
    before = json.dumps(template)
    found = sam.with_switches(template, {"B": "3"})
    assert found["Resources"]["Plain"]["Properties"] == {"Timeout": 5, "Environment": {"Variables": {"B": "3"}}}
    assert found["Resources"]["Told"]["Properties"] == {"Environment": {"Variables": {"A": "1", "B": "3"}}}
    assert found["Resources"]["Queue"] == {"Type": "AWS::SQS::Queue"}
    assert json.dumps(template) == before
