// For AWS Lambda, behind API Gateway (both versions) or a function URL.

/** The function's handler. */
export function toHandler({ receive }) {
  return async function handler(event) {
    const method = event.requestContext?.http?.method ?? event.httpMethod ?? "POST";
    const { status, headers, body } = await receive({ method, headers: headersOf(event), body: bodyOf(event) });
    return { statusCode: status, headers, body };
  };
}

/** All headers: a REST API lists duplicates separately, other APIs join them with commas. */
function headersOf({ multiValueHeaders, headers }) {
  if (!multiValueHeaders) return Object.entries(headers ?? {});
  return Object.entries(multiValueHeaders).flatMap(([name, values]) => values.map((value) => [name, value]));
}

function bodyOf({ body, isBase64Encoded }) {
  if (!isBase64Encoded) return new TextEncoder().encode(body ?? "");
  return Uint8Array.from(atob(body ?? ""), (letter) => letter.charCodeAt(0));
}
