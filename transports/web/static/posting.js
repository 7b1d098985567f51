// Posting JSON, with errors in plain words.

export const { session, conversation } = document.body.dataset;

export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Returns {ok, said, error, isWorthRetrying}.
export async function post(path, fields) {
  let answer;
  try {
    answer = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ chat: session, conversation, ...fields }),
    });
  } catch {
    return { ok: false, error: "There is no connection to the service.", isWorthRetrying: true };
  }
  const said = await answer.json().catch(() => ({}));
  if (answer.ok) return { ok: true, said };
  return {
    ok: false,
    error: said.error || "The service did not take this.",
    isWorthRetrying: answer.status >= 500 || answer.status === 429,
  };
}
