// What the clients of both versions of the official JavaScript SDK share.
import { randomUUID } from "node:crypto";

/** A client of the transport of a binding. The card says where users find the agent; `url` is where a test put it. */
export const factoryOf = (binding, { JsonRpcTransportFactory, RestTransportFactory }) =>
  binding === "JSONRPC" ? new JsonRpcTransportFactory() : new RestTransportFactory();

export const newId = (prefix) => `${prefix}-${randomUUID()}`;

/** What `told` says of each event, to the end of the stream. */
export async function allOf(events, told) {
  const seen = [];
  for await (const event of events) seen.push(told(event));
  return seen;
}

/** The class of the error that a deed raises, or of its cause, if the error has none of its own. */
export async function refused(deed) {
  try {
    await deed();
    return "served";
  } catch (error) {
    return error.name === "Error" ? `Error caused by ${error.cause?.name}` : error.name;
  }
}
