// For servers on Node's http module: http itself, express, fastify.

/** A listener for `createServer`, and a handler for express. Nothing may read the request's body before it. */
export function toListener({ receive }) {
  return async function listener(request, response) {
    const { status, headers, body } = await receive({
      method: request.method, headers: pairs(request.rawHeaders), body: request,
    });
    const unread = status === 408 || status === 413 ? { Connection: "close" } : {};
    response.writeHead(status, { ...headers, ...unread });
    response.end(body);
  };
}

function pairs(raw) {
  return raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1]]] : []));
}
