// Asking the server: everything is below the address of the page, which has the token.

const BASE = new URL(".", location.href).pathname;

export class Refused extends Error {
  constructor(message, status, told) {
    super(message);
    this.status = status;
    this.told = told;
  }
}

export const address = (path) => BASE + path;

export async function ask(method, path, body, signal) {
  const raw = body instanceof Blob || body instanceof ArrayBuffer;
  const text = body === undefined || raw ? undefined : JSON.stringify(body);
  let response;
  try {
    response = await fetch(address(path), {
      method,
      signal,
      headers: text === undefined ? {} : { "content-type": "application/json" },
      body: text ?? body,
      // What is saved last arrives even if the page is closed meanwhile.
      keepalive: method === "PUT" && text !== undefined && text.length < 30000,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The program does not answer. Start odejet app again, and open the address that it prints.", 0);
  }
  const type = response.headers.get("content-type") || "";
  const told = type.startsWith("application/json") ? await response.json() : { refused: await response.text() };
  if (!response.ok) throw new Refused(told.refused || "This cannot be done.", response.status, told);
  return told;
}
