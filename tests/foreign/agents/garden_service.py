"""Serves the customers of a garden shop: after python/agents/customer-service of google/adk-samples at e39b8067995c.

As there: the customer's profile comes into the state before the agent begins, a callback counts the requests to the
model in the state and waits if there are too many, a callback before tools refuses another customer's id and decides
about small discounts, and the tools read and change a cart. Changed: the cart is a service whose address is a variable.
Left out: seven of the twelve tools, which return fixed values, and most of the profile and of the instructions.
"""

import json
import os
import time
from typing import Any

import httpx
from google.adk.agents import Agent
from google.adk.agents.callback_context import CallbackContext
from google.adk.models import LlmRequest
from google.adk.tools import BaseTool, ToolContext

PROFILE = {"customer_id": "123", "first_name": "Alex", "loyalty_points": 133, "preferred_store": "Anytown"}
QUOTA, WINDOW_S, OWN_DISCOUNT = 10, 60, 10


def load_profile(callback_context: CallbackContext) -> None:
    """Loads the customer's profile into the state, if it is not there."""
    if "customer_profile" not in callback_context.state:
        callback_context.state["customer_profile"] = json.dumps(PROFILE)


def limit_rate(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
    """Waits after ten requests to the model in a minute."""
    state, now = callback_context.state, time.time()
    began, count = state.get("timer_start", now), state.get("request_count", 0) + 1
    if count > QUOTA:
        time.sleep(max(0, WINDOW_S - (now - began) + 1))
        began, count = now, 1
    state["timer_start"], state["request_count"] = began, count


def check_tool(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> Any:
    """Refuses another customer's id, and approves small discounts."""
    own = json.loads(tool_context.state["customer_profile"])["customer_id"]
    if args.get("customer_id", own) != own:
        return {"error": f"only the customer {own} is served"}
    if tool.name == "ask_for_approval" and args["value"] <= OWN_DISCOUNT:
        return {"status": "approved", "message": "no manager is needed"}
    return None


def access_cart(customer_id: str) -> dict[str, Any]:
    """Returns what is in the customer's cart."""
    return httpx.get(f"{os.environ['CART_URL']}/carts/{customer_id}").raise_for_status().json()


def modify_cart(customer_id: str, add: list[str], remove: list[str]) -> dict[str, Any]:
    """Adds items to the customer's cart, and removes items from it."""
    changes = {"add": add, "remove": remove}
    response = httpx.post(f"{os.environ['CART_URL']}/carts/{customer_id}/changes", json=changes)
    return response.raise_for_status().json()


def ask_for_approval(discount_type: str, value: float, reason: str) -> dict[str, Any]:
    """Asks the manager to approve a discount."""
    return {"status": "approved", "message": f"the manager approves {value} {discount_type}: {reason}"}


def available_planting_times(date: str) -> list[str]:
    """Returns the times of a day at which somebody can come and plant."""
    return [f"{date} 9-12", f"{date} 13-16"]


def schedule_planting(customer_id: str, when: str, tool_context: ToolContext) -> dict[str, Any]:
    """Makes an appointment for planting."""
    tool_context.state["appointments"] = [*tool_context.state.get("appointments", []), when]
    return {"status": "success", "appointments": tool_context.state["appointments"]}


root_agent = Agent(
    model="gemini-2.0-flash-001",
    name="customer_service_agent",
    global_instruction=f"The profile of the customer: {json.dumps(PROFILE)}",
    instruction=(
        "You serve the customers of a shop for home and garden. Greet them by name. Look into the cart before you"
        " recommend anything. Change the cart and make appointments only after the customer has agreed. Ask for"
        " approval of discounts."
    ),
    tools=[access_cart, modify_cart, ask_for_approval, available_planting_times, schedule_planting],
    before_agent_callback=load_profile,
    before_model_callback=limit_rate,
    before_tool_callback=check_tool,
)
