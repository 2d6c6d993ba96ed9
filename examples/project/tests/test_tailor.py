"""The agents, without AWS: each test is a deployment in memory."""

from my_agents.tailor import tailor

from a2a_serverless.testing import AgentTestHarness


def test_a_coat_has_the_colour_that_the_client_says() -> None:
    harness = AgentTestHarness(tailor)
    asked = harness.send("A coat, please.")
    assert asked.said == "Which colour?"
    done = harness.send("red", task_id=asked.task.id)
    assert done.text("coat.txt") == "red sleeves\nred back\nred collar\n"
