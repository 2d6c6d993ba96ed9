"""The picture model that needs no model: it paints a few subjects of the sea, and says when it knows none."""

from __future__ import annotations

import asyncio
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_serverless.domain.scenes import Scene


class BuiltinPicture:
    """Draws scenes with Pillow. The same scene gives the same bytes."""

    async def draw(self, scene: Scene) -> bytes:
        return await asyncio.to_thread(_draw, scene)


def _draw(scene: Scene) -> bytes:
    # Pillow is needed by nobody who does not paint.
    from a2a_serverless.adapters.builtin.painting.card import compose_card
    from a2a_serverless.adapters.builtin.painting.composition import compose

    picture = compose(scene) if scene.is_known else compose_card(scene)
    png = BytesIO()
    picture.save(png, "PNG")
    return png.getvalue()
