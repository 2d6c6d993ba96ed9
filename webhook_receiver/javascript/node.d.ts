import type { IncomingMessage, ServerResponse } from "node:http";
import type { Receiver } from "./index.js";

/** A listener for `createServer`, and a handler for express. Nothing may read the request's body before it. */
export function toListener(receiver: Receiver): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
