// Drives a recording through Microsoft's own client (@vscode/debugadapter-testsupport).
//
//     node client.js PYTRACE     the pytrace to record and to replay with; `make dap-client` does it

"use strict";
const assert = require("node:assert");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { execFileSync } = require("node:child_process");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

const SOURCE = `\
def add(numbers):
    result = 0
    for number in numbers:
        result += number
    return result

def main():
    total = add([1, 2, 3])
    try:
        [][total]
    except IndexError as error:
        text = str(error)
    return text

main()
`;

async function variables(client, threadId) {
  const { body: { stackFrames: [frame] } } = await client.stackTraceRequest({ threadId, levels: 1 });
  const { body: { scopes } } = await client.scopesRequest({ frameId: frame.id });
  const locals = scopes.find((each) => each.name === "Locals");
  const { body } = await client.variablesRequest({ variablesReference: locals.variablesReference });
  return { frame, values: Object.fromEntries(body.variables.map((each) => [each.name, each.value])) };
}

// a way, and the stop that it ends with
async function go(client, request, args) {
  const stopped = client.waitForEvent("stopped");
  await client.send(request, args);
  return (await stopped).body;
}

async function main() {
  const pytrace = process.argv[2];
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "pytrace-dap-"));
  const script = path.join(folder, "script.py");
  const database = path.join(folder, "traces.sqlite");
  fs.writeFileSync(script, SOURCE);
  execFileSync(pytrace, ["-q", "--lines", "-o", database, script], { cwd: folder });

  process.env.REPLAY_PYTRACE = pytrace;
  process.env.REPLAY_DATABASE = database;
  const client = new DebugClient("sh", path.join(__dirname, "adapter.sh"), "pytrace", { cwd: folder }, true);
  await client.start();
  try {
    // launch, initialized, setBreakpoints, configurationDone, stopped: by the client's own checks
    await client.hitBreakpoint({ stopOnEntry: false }, { path: script, line: 4 });
    const { body: { threads } } = await client.threadsRequest();
    const threadId = threads.find((each) => each.name === "MainThread").id;

    const first = await variables(client, threadId);
    assert.strictEqual(first.frame.line, 4);
    assert.deepStrictEqual(first.values, { numbers: "[1, 2, 3]", result: "0", number: "1" });

    assert.strictEqual((await go(client, "continue", { threadId })).reason, "breakpoint");
    assert.strictEqual((await variables(client, threadId)).values.result, "1");
    assert.strictEqual((await go(client, "stepBack", { threadId })).reason, "step");
    assert.strictEqual((await variables(client, threadId)).frame.line, 3);
    assert.strictEqual((await go(client, "reverseContinue", { threadId })).reason, "breakpoint");
    assert.deepStrictEqual((await variables(client, threadId)).values, first.values);

    const { frame } = await variables(client, threadId);
    const { body } = await client.evaluateRequest({ expression: "numbers[2] + result", frameId: frame.id });
    assert.strictEqual(body.result, "3");

    await client.setBreakpointsRequest({
      source: { path: script },
      breakpoints: [{ line: 4, condition: "number == 3" }],
    });
    await go(client, "continue", { threadId });
    assert.strictEqual((await variables(client, threadId)).values.result, "3");

    await client.setBreakpointsRequest({ source: { path: script }, breakpoints: [] });
    await go(client, "stepOut", { threadId });
    const { body: { targets } } = await client.gotoTargetsRequest({ source: { path: script }, line: 12 });
    assert.strictEqual(targets.length, 1);
    assert.strictEqual((await go(client, "goto", { threadId, targetId: targets[0].id })).reason, "goto");
    assert.strictEqual((await variables(client, threadId)).frame.line, 12);

    const end = await go(client, "continue", { threadId });
    assert.strictEqual(end.description, "the recording ends here");
    const begin = await go(client, "reverseContinue", { threadId });
    assert.strictEqual(begin.description, "the recording begins here");
    const terminated = client.waitForEvent("terminated");
    await client.terminateRequest();
    await terminated;
  } finally {
    await client.stop();
    fs.rmSync(folder, { recursive: true });
  }
  console.log("@vscode/debugadapter-testsupport: all as it should be");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
