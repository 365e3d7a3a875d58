"use strict";

const byId = (id) => document.getElementById(id);
const LOOK_MS = 500;
let limitBytes = 512 * 1024 * 1024;
let rows = [];
let shown = null;
let looking = 0;
let busy = false;

// Every text lands as text: names and sentences come from logs.
function say(id, text) {
  byId(id).textContent = text;
}

function complain(id, text) {
  byId(id).hidden = !text;
  say(id, text || "");
}

// Answers with the body as JSON; throws an Error whose message a person can read.
async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "omit", cache: "no-store", ...options });
  } catch {
    throw new Error("The server does not answer. Is oortriage serve still running?");
  }
  const body = answer.status === 204 ? {} : await answer.json().catch(() => ({}));
  if (!answer.ok) {
    throw new Error(body.problem || `The server answered with ${answer.status}.`);
  }
  return body;
}

function size(bytes) {
  const mib = bytes / 1048576;
  return mib >= 1024 ? `${(mib / 1024).toFixed(1)} GiB` : `${Math.max(1, Math.round(mib))} MiB`;
}

async function add(name, blob) {
  if (blob.size > limitBytes) {
    throw new Error(
      `${name}: ${size(blob.size)} is more than ${size(limitBytes)}. Read it with: oortriage analyze FILE`,
    );
  }
  const row = await ask(`logs?name=${encodeURIComponent(name)}`, {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream" },
    body: blob,
  });
  rows.unshift(row);
  return row;
}

async function addAll(named) {
  if (busy || !named.length) {
    return;
  }
  busy = true;
  complain("problem", "");
  byId("choose").disabled = true;
  const problems = [];
  let last = null;
  for (const [at, [name, blob]] of named.entries()) {
    say("status", `Reading ${name}${named.length > 1 ? ` (${at + 1} of ${named.length})` : ""}…`);
    try {
      last = await add(name, blob);
    } catch (problem) {
      problems.push(problem.message);
    }
  }
  busy = false;
  byId("choose").disabled = false;
  say("status", last ? `${last.name} is read.` : "");
  complain("problem", problems.join(" "));
  if (last) {
    show(last);
    byId("result-title").focus();
  }
}

function list() {
  byId("kept").hidden = rows.length < 2;
  byId("list").replaceChildren(
    ...rows.map((row) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(row.name);
      const verdict = document.createElement("span");
      verdict.textContent = row.title;
      button.append(verdict);
      button.setAttribute("aria-current", String(shown !== null && row.id === shown.id));
      button.addEventListener("click", () => {
        show(row);
        byId("result-title").focus();
      });
      const item = document.createElement("li");
      item.append(button);
      return item;
    }),
  );
}

function show(row) {
  shown = row;
  clearTimeout(looking);
  byId("result").hidden = !row;
  list();
  if (!row) {
    document.title = "oortriage";
    return;
  }
  document.title = `${row.title} - oortriage`;
  say("result-title", row.name);
  say("verdict", row.verdict);
  const able = row.resource === "shared_memory";
  byId("experiment-form").hidden = !able;
  say(
    "experiment-why",
    able
      ? "Compiles the failing kernel over a grid of settings, on this machine, without a GPU. The kernel's source may be fetched from the package index."
      : "There is no kernel to compile: this is not about the shared memory of a block.",
  );
  follow(row, row.experiment);
  load();
}

function load() {
  const redact = byId("redact").checked ? "1" : "0";
  const base = `logs/${shown.id}/report?redact=${redact}`;
  for (const kind of ["markdown", "html", "json", "sarif"]) {
    byId(`as-${kind}`).href = `${base}&format=${kind}&download`;
  }
  byId("as-page").href = base;
  // A new address each time: the report changes with the experiment. Replaced, so that "back" leaves the page.
  const old = byId("report");
  const frame = old.cloneNode(false);
  frame.title = `Report on ${shown.name}`;
  frame.src = `${base}&at=${Date.now()}`;
  old.replaceWith(frame);
}

// Shows how an experiment stands, and looks again while it runs.
function follow(row, told) {
  row.experiment = told;
  if (shown !== row) {
    return;
  }
  const runs = told.state === "running";
  byId("start").disabled = runs;
  byId("stop").hidden = !runs;
  byId("progress-row").hidden = !runs;
  const bar = byId("progress");
  if (runs && told.all) {
    bar.max = told.all;
    bar.value = told.done;
  } else {
    bar.removeAttribute("value");
  }
  say("progress-label", told.all ? `Compiled ${told.done} of ${told.all}` : "Starting the compiler");
  const words = { running: "The experiment runs.", done: `Done. ${told.sentence}`, stopped: "Stopped." };
  if (byId("experiment-status").textContent !== (words[told.state] || "")) {
    say("experiment-status", words[told.state] || "");
  }
  complain("experiment-problem", told.state === "failed" ? told.problem : "");
  clearTimeout(looking);
  if (runs) {
    looking = setTimeout(() => look(row), LOOK_MS);
  }
}

async function look(row) {
  try {
    const told = await ask(`logs/${row.id}/experiment`);
    follow(row, told);
    if (told.state === "done" && shown === row) {
      load();
    }
  } catch (problem) {
    if (shown === row) {
      follow(row, { state: "failed", done: 0, all: 0, sentence: "", problem: problem.message });
    }
  }
}

async function start(event) {
  event.preventDefault();
  const row = shown;
  byId("start").disabled = true;
  complain("experiment-problem", "");
  try {
    const told = await ask(`logs/${row.id}/experiment`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ kernel: byId("kernel").value, gpu: byId("gpu").value }),
    });
    follow(row, told);
  } catch (problem) {
    byId("start").disabled = false;
    complain("experiment-problem", problem.message);
  }
}

async function stop() {
  const row = shown;
  try {
    follow(row, await ask(`logs/${row.id}/experiment`, { method: "DELETE" }));
    byId("start").focus();
  } catch (problem) {
    complain("experiment-problem", problem.message);
  }
}

async function forget() {
  const row = shown;
  try {
    await ask(`logs/${row.id}`, { method: "DELETE" });
  } catch (problem) {
    complain("problem", problem.message);
  }
  rows = rows.filter((one) => one !== row);
  show(rows[0] || null);
  say("status", `${row.name} is forgotten.`);
  byId("choose").focus();
}

function drops() {
  const place = byId("drop");
  // The whole window takes a file: one that is dropped beside the frame must not replace the page.
  addEventListener("dragover", (event) => {
    event.preventDefault();
    place.classList.add("over");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) {
      place.classList.remove("over");
    }
  });
  addEventListener("drop", (event) => {
    event.preventDefault();
    place.classList.remove("over");
    const files = [...event.dataTransfer.files];
    const text = event.dataTransfer.getData("text/plain");
    if (files.length) {
      addAll(files.map((file) => [file.name, file]));
    } else if (text) {
      addAll([["dropped.log", new Blob([text])]]);
    }
  });
  addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files];
    const typing = event.target.closest?.("input, textarea");
    const text = event.clipboardData.getData("text/plain");
    if (files.length) {
      event.preventDefault();
      addAll(files.map((file) => [file.name, file]));
    } else if (!typing && text.trim()) {
      addAll([["pasted.log", new Blob([text])]]);
    }
  });
}

async function begin() {
  drops();
  byId("choose").addEventListener("click", () => byId("file").click());
  byId("file").addEventListener("change", (event) => {
    const files = [...event.target.files];
    event.target.value = "";
    addAll(files.map((file) => [file.name, file]));
  });
  byId("paste-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byId("text").value;
    if (text.trim()) {
      addAll([["pasted.log", new Blob([text])]]);
    } else {
      complain("problem", "There is no text yet.");
      byId("text").focus();
    }
  });
  byId("redact").addEventListener("change", load);
  byId("experiment-form").addEventListener("submit", start);
  byId("stop").addEventListener("click", stop);
  byId("forget").addEventListener("click", forget);
  try {
    const known = await ask("logs");
    limitBytes = known.limit_bytes;
    say("limit", size(limitBytes));
    byId("kernel").append(
      ...known.kernels.map((kernel) => {
        const option = new Option(kernel.name, kernel.name);
        option.title = kernel.title;
        return option;
      }),
    );
    rows = known.logs;
    if (rows.length) {
      show(rows[0]);
    }
  } catch (problem) {
    complain("problem", problem.message);
  }
}

begin();
