"""Rolls dice: after samples/python/agents/dice_agent_rest of a2aproject/a2a-samples at 6603ba3f2c31.

As there: an LlmAgent with two plain functions as tools, of which one is random. Left out: the runner with its services
in memory, the executor and the server, in whose place the line of ours is.
"""

import random

from google.adk.agents import LlmAgent


def roll_dice(sides: int = 6) -> int:
    """Rolls a die.

    Args:
        sides: How many sides it has.

    Returns:
        A number from 1 to the number of sides.
    """
    return random.randint(1, sides)


def check_prime(nums: list[int]) -> str:
    """Says which of the numbers are prime.

    Args:
        nums: The numbers.

    Returns:
        A sentence with the primes.
    """
    primes = sorted({n for n in map(int, nums) if n > 1 and all(n % divisor for divisor in range(2, int(n**0.5) + 1))})
    return f"{', '.join(map(str, primes))} are prime." if primes else "None is prime."


def create_agent() -> LlmAgent:
    """The agent."""
    return LlmAgent(
        model="gemini-2.0-flash-001",
        name="dice_roll_agent",
        description="Rolls dice of any number of sides, and says which numbers are prime.",
        instruction=(
            "You roll dice, and talk about the outcome. Never make up a roll: call roll_dice with an integer. You may"
            " roll several dice at once by parallel calls. To check primes, first roll, wait for the result, and then"
            " call check_prime with all rolls so far. Always name the rolls in your answer."
        ),
        tools=[roll_dice, check_prime],
    )
