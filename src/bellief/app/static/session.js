// The tab's workspace: requests, events, and what all pages know.
import { $ } from "./dom.js";

export const session = { workspace: null, log: null, saved: [], answers: {} };
const listeners = {};
let source = null;

export function on(event, listener) {
  (listeners[event] ??= []).push(listener);
}

export function emit(event, detail) {
  for (const listener of listeners[event] ?? []) listener(detail);
}

export function alarm(text) {
  $("alert").hidden = !text;
  $("alert").textContent = text || "";
}

async function send(path, options) {
  let answer;
  try {
    answer = await fetch(path, { method: "POST", ...options });
  } catch (error) {
    if (error.name === "AbortError") return { stopped: true, error: "Stopped." };
    alarm("The program behind this page does not answer: it was stopped, perhaps. Start 'bellief app' again.");
    return { error: "The program behind this page does not answer." };
  }
  try {
    return await answer.json();
  } catch (error) {
    if (error.name === "AbortError") return { stopped: true, error: "Stopped." };
    return { error: `The answer cannot be read (status ${answer.status}).` };
  }
}

const JSON_TYPE = { "Content-Type": "application/json" };

// Ask something of the workspace: an object that has `error` where it went wrong.
export function ask(what, question, signal) {
  return send(`/api/w/${session.workspace}/${what}`, { body: JSON.stringify(question), headers: JSON_TYPE, signal });
}

export async function upload(what, file, signal) {
  if (file.size > session.most * 1e6) {
    return { error: `${file.name} is larger than ${session.most} MB: start 'bellief app' with the file's path, or with --max-upload.` };
  }
  const headers = { "Content-Type": "application/octet-stream", "X-File-Name": encodeURIComponent(file.name) };
  return send(`/api/w/${session.workspace}/${what}`, { body: file, headers, signal });
}

export const fileAddress = (kind, name) => `/api/w/${session.workspace}/files/${kind}/${encodeURIComponent(name)}`;

export async function connect() {
  const resume = sessionStorage.getItem("bellief-workspace");
  const made = await send("/api/workspaces", { body: JSON.stringify({ resume }), headers: JSON_TYPE });
  if (made.error) {
    alarm(made.error);
    return null;
  }
  session.workspace = made.workspace;
  session.saved = made.policies;
  session.most = made.most;
  sessionStorage.setItem("bellief-workspace", made.workspace);
  source = new EventSource(`/api/w/${made.workspace}/events`);
  source.addEventListener("open", () => alarm(""));
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) alarm("This page has lost its program. Reload it, or start 'bellief app' again.");
    else alarm("The program behind this page does not answer; waiting for it.");
  });
  for (const name of ["progress", "curve", "posterior", "agents-began", "agent-done", "agent-stopped", "agent-failed"]) {
    source.addEventListener(name, (event) => emit(name, JSON.parse(event.data)));
  }
  return made;
}

window.addEventListener("pagehide", () => source?.close());
// A page that comes back from the browser's memory has lost its events.
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// Work that takes long: a text, a bar and a button. Returns what `ask` returned.
let current = 0;
export async function busy(kind, text, work) {
  const mine = ++current;
  const controller = new AbortController();
  const show = setTimeout(() => {
    if (mine !== current) return;
    $("busy-text").textContent = text;
    $("busy-bar").removeAttribute("value");
    $("busy-cancel").onclick = () => controller.abort();
    $("busy").hidden = false;
    $("busy").dataset.kind = kind;
  }, 250);
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(show);
    if (mine === current) $("busy").hidden = true;
  }
}

on("progress", ({ kind, fraction }) => {
  if ($("busy").dataset.kind === kind) $("busy-bar").value = fraction;
});
