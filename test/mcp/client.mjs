// Does what its argument says, a list of [tool, arguments], and prints all answers as JSON.
import { createRequire } from "node:module";
const require = createRequire(process.env.CULET_NODE_MODULES + "/");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");

const [calls, command, ...args] = [JSON.parse(process.argv[2]), ...process.argv.slice(3)];
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "pipe" });
const client = new Client({ name: "test", version: "1.0.0" });
const errors = [];
client.onerror = (error) => errors.push(String(error));
let stderr = "";
transport.stderr.on("data", (text) => { stderr += text; });
await client.connect(transport);
const answers = { server: client.getServerVersion(), tools: (await client.listTools()).tools, calls: [] };
for (const [name, given, cancelled] of calls) {
  try {
    if (cancelled) {
      const ending = new AbortController();
      const call = client.callTool({ name, arguments: given }, undefined, { signal: ending.signal });
      call.catch(() => {});
      await client.ping();
      ending.abort("enough");
      await call;
    } else answers.calls.push(await client.callTool({ name, arguments: given }));
  } catch (error) { answers.calls.push({ thrown: String(error) }); }
}
await client.close();
process.stdout.write(JSON.stringify({ ...answers, errors, stderr }));
