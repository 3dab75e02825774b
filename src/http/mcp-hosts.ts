import { allowingAddress, versionedPackage } from './clients.ts'

/** How a program that runs agents is given the service's MCP server. `text`: a command, or what `file` has. */
interface McpHost { name: string, file?: string, text: string }

/**
 * One block to paste for each host, as it reads its settings. Where a host can, it takes the key from the environment
 * (HANDOFF_KEY) or asks for it, so that it stands in no file. A block that starts a program needs Node.
 */
export function mcpHosts (baseUrl: string): McpHost[] {
  const url = `${baseUrl}/mcp`
  const bearer = (key: string) => ({ Authorization: `Bearer ${key}` })
  const json = (value: object) => JSON.stringify(value, null, 2)
  return [
    {
      name: 'Claude Code',
      text: `claude mcp add --transport http handoff ${url} --header "Authorization: Bearer $HANDOFF_KEY"`
    },
    {
      name: 'Claude Desktop',
      file: 'claude_desktop_config.json',
      text: json({
        mcpServers: {
          handoff: {
            command: 'npx',
            args: ['-y', versionedPackage(baseUrl), 'mcp'],
            env: { HANDOFF_URL: baseUrl, HANDOFF_KEY: 'your key', ...allowingAddress }
          }
        }
      })
    },
    {
      name: 'Cursor',
      file: '.cursor/mcp.json',
      text: json({ mcpServers: { handoff: { url, headers: bearer('$' + '{env:HANDOFF_KEY}') } } })
    },
    {
      name: 'VS Code',
      file: '.vscode/mcp.json',
      text: json({
        inputs: [{ type: 'promptString', id: 'handoff-key', description: 'Handoff key', password: true }],
        servers: { handoff: { type: 'http', url, headers: bearer('$' + '{input:handoff-key}') } }
      })
    },
    {
      name: 'Codex CLI',
      file: '~/.codex/config.toml',
      text: `[mcp_servers.handoff]\nurl = "${url}"\nbearer_token_env_var = "HANDOFF_KEY"`
    },
    {
      name: 'Gemini CLI',
      file: '~/.gemini/settings.json',
      text: json({ mcpServers: { handoff: { httpUrl: url, headers: bearer('$HANDOFF_KEY') } } })
    },
  ]
}
