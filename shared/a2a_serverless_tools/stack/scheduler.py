"""``python -m a2a_serverless_tools.stack.scheduler ENDPOINT TEMPLATE``: EventBridge Scheduler for the local stack.

The emulator stores the schedules of agents, and their states, but sends no message of theirs (`guarded_emulator.py`).
Its CloudFormation leaves out their time zones, so this process adds them.
"""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from a2a_serverless.domain.schedules import SCHEDULED_TIME_KEYWORD, format_tick
from a2a_serverless.testing.schedules import Ticker
from a2a_serverless_tools.operators.deployed import StackName
from a2a_serverless_tools.operators.operations import make_schedules
from a2a_serverless_tools.operators.schedules import ScheduleAdmin, list_schedules
from a2a_serverless_tools.stack import sam

LOOK_S = 1.0


def add_zones(admin: ScheduleAdmin, template: Mapping[str, Any]) -> None:
    """Give the emulator the time zones of the template's schedules."""
    client = admin.client("scheduler")
    for properties in sam.schedules_in(template):
        schedule = client.get_schedule(GroupName=admin.group, Name=properties["Name"])
        fields = {name: schedule[name] for name in ("Name", "GroupName", "State", "Target", "FlexibleTimeWindow")}
        zoned = {name: properties[name] for name in ("ScheduleExpression", "ScheduleExpressionTimezone")}
        client.update_schedule(**fields, **zoned)


def send_due(admin: ScheduleAdmin, ticker: Ticker) -> None:
    """Send the messages of the enabled schedules that are due since the last call."""
    enabled = [one for one in list_schedules(admin) if one.state == "ENABLED"]
    by_key = {one.schedule.key(one.agent): one for one in enabled}
    schedules = {key: one.schedule for key, one in by_key.items()}
    for tick in ticker.due(schedules, admin.clock.now()):
        body = by_key[tick.key].body.replace(SCHEDULED_TIME_KEYWORD, format_tick(tick.at))
        admin.client("sqs").send_message(QueueUrl=admin.queue_url, MessageBody=body)


def look(admin: ScheduleAdmin, ticker: Ticker) -> None:
    """Send what is due, and write an error of the emulator to stderr.

    An emulator whose functions use all of the machine may not answer for some seconds. If it has not listed the
    schedules, the next call sends what was due.
    """
    try:
        send_due(admin, ticker)
    except (BotoCoreError, ClientError) as error:
        sys.stderr.write(f"not sent: {type(error).__name__}: {error}\n")


def main() -> None:
    """Send what is due until a signal ends the process."""
    endpoint, template = sys.argv[1:]
    admin = make_schedules(StackName(sam.STACK_NAME, endpoint))
    add_zones(admin, json.loads(Path(template).read_text()))
    ticker = Ticker(admin.clock.now())
    while True:
        time.sleep(LOOK_S)
        look(admin, ticker)


if __name__ == "__main__":
    main()
