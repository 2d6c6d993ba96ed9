// A Worker that reaches the verdict of each vector that it gets: {issuer, audience, keys, cases} -> [[code, challenge]].
import { parseKeys, Refused, verify } from "a2a-webhook-receiver";

export default {
  async fetch(request) {
    const { issuer, audience, keys: published, cases } = await request.json();
    const keys = await parseKeys(new TextEncoder().encode(JSON.stringify(published)));
    const verdict = async ({ headers, body, now, expectations }) => {
      const bytes = Uint8Array.from(atob(body), (letter) => letter.charCodeAt(0));
      try {
        const proven = await verify({ headers, body: bytes, keys, now, issuer, audience, expectations });
        return [null, proven.challenge ?? null];
      } catch (error) {
        if (error instanceof Refused) return [error.code, null];
        throw error;
      }
    };
    return Response.json(await Promise.all(cases.map(verdict)));
  },
};
