import assert from 'node:assert/strict'
import type { SandboxCapabilities } from '../../sandbox/spec.ts'
import { refused } from '../refused.ts'
import { outOfTime, output, type SandboxCases, textOf } from './case.ts'

export function commandCases({
  enforced,
  stdin,
  streaming,
  binaryOutput,
}: SandboxCapabilities): SandboxCases {
  return {
    async 'a command gives its exit code, and its two streams apart'(sandbox) {
      const result = await sandbox.exec('echo out; echo err >&2; exit 3').result
      assert.deepEqual([result.exitCode, result.timedOut, result.truncated], [3, false, false])
      assert.deepEqual([textOf(result.stdout), textOf(result.stderr)], ['out\n', 'err\n'])
      assert.ok(result.durationMs > 0)
    },

    async 'a text goes through a shell, a list does not'(sandbox) {
      assert.equal(await output(sandbox, 'a=1; echo "$a" | tr 1 2'), '2\n')
      assert.equal(await output(sandbox, ['printf', '%s\n', '$HOME; *', "it's", '']), "$HOME; *\nit's\n\n")
    },

    async 'a program that is not there rejects, and a shell says so by its exit code'(sandbox) {
      const error = await refused(sandbox.exec(['no-such-program-anywhere']).result, 'sandbox-failed')
      assert.match(error.message, /no-such-program-anywhere/)
      assert.equal((await sandbox.exec('no-such-program-anywhere').result).exitCode, 127)
    },

    async 'a command that cannot be right is refused with all that is wrong'(sandbox) {
      const options = { timeout: -1, outputLimit: 0.5 }
      const error = await refused(sandbox.exec([], options).result, 'invalid-argument')
      for (const name of ['command', 'timeout', 'outputLimit']) assert.ok(error.message.includes(name), name)
    },

    async 'commands run in the workspace, with the environment they are given'(sandbox) {
      assert.equal(await output(sandbox, 'pwd'), `${sandbox.cwd}\n`)
      assert.equal(await output(sandbox, 'echo "$GIVEN"', { env: { GIVEN: "it's $x" } }), "it's $x\n")
    },

    ...(enforced.environment && {
      async 'commands do not get the keys of this process'(sandbox) {
        process.env.OPENRATH_TEST_API_KEY = 'a-key-of-this-process'
        try {
          const environment = await output(sandbox, 'env')
          assert.ok(!environment.includes('a-key-of-this-process'))
          assert.ok(/^PATH=/m.test(environment))
        } finally {
          delete process.env.OPENRATH_TEST_API_KEY
        }
      },
    }),

    ...(stdin && {
      async 'a command reads its input to the end, and nothing without one'(sandbox) {
        assert.equal(await output(sandbox, 'cat', { stdin: 'in\n' }), 'in\n')
        assert.equal(
          await output(sandbox, 'wc -c', { stdin: new Uint8Array(3_000_000) }).then(Number),
          3_000_000,
        )
        assert.equal(await output(sandbox, 'cat; echo end'), 'end\n')
        assert.equal(await output(sandbox, 'true', { stdin: 'x'.repeat(3_000_000) }), '')
      },
    }),

    ...(binaryOutput && {
      async 'output comes byte for byte'(sandbox) {
        const { stdout } = await sandbox.exec(['printf', '\\000\\377\\012\\r\\n']).result
        assert.deepEqual([...stdout], [0, 255, 10, 13, 10])
      },
    }),

    ...(streaming && {
      async 'output can be followed while the command runs'(sandbox) {
        const seen: string[] = []
        // It ends only when what was followed has led to the file it waits for.
        const command = sandbox.exec('echo first; until test -e go; do sleep 0.01; done; echo second >&2')
        for await (const { stream, data } of command) {
          seen.push(`${stream} ${textOf(data).trim()}`)
          if (seen.length === 1) await sandbox.files.write('go', '')
        }
        assert.deepEqual(seen, ['stdout first', 'stderr second'])
        assert.equal(textOf((await command.result).stdout), 'first\n')
      },

      async 'a slow follower gets everything, and one who leaves does not stop the command'(sandbox) {
        const command = sandbox.exec('head -c 5000000 /dev/zero')
        let size = 0
        for await (const { data } of command) {
          await new Promise(resolve => setImmediate(resolve))
          size += data.length
        }
        assert.equal(size, 5_000_000)
        const other = sandbox.exec('head -c 5000000 /dev/zero; echo > done')
        for await (const _ of other) break
        assert.equal((await other.result).exitCode, 0)
        assert.ok(await sandbox.files.stat('done'))
      },

      async 'whoever follows a command that fails to start gets the error'(sandbox) {
        const following = (async () => {
          for await (const _ of sandbox.exec(['no-such-program-anywhere'])) assert.fail('output of nothing')
        })()
        await refused(following, 'sandbox-failed')
      },
    }),

    async 'more output than the limit keeps the beginning and the end, and says what is missing'(sandbox) {
      const command = 'echo start; head -c 300000 /dev/zero | tr "\\0" x; echo; echo end'
      const { stdout, stderr, truncated } = await sandbox.exec(command, { outputLimit: 1000 }).result
      const text = textOf(stdout)
      assert.ok(truncated)
      assert.ok(text.startsWith('start\nxxx') && text.endsWith('xxx\nend\n'))
      assert.match(text, /\[… 299011 bytes are left out here …\]/)
      assert.ok(text.length < 1100)
      assert.equal(stderr.length, 0)
    },

    async 'endless output does not fill the memory, and is stopped by a timeout'(sandbox) {
      const { stdout } = await outOfTime(sandbox, 'yes', ({ truncated }) => truncated)
      assert.ok(stdout.length < 1.1 * 1024 * 1024)
    },

    async 'many commands run at once, each with its own output'(sandbox) {
      const outputs = await Promise.all(
        Array.from({ length: 20 }, (_, i) => output(sandbox, `sleep 0.0${i % 5}; echo ${i}`)),
      )
      assert.deepEqual(
        outputs,
        outputs.map((_, i) => `${i}\n`),
      )
    },
  }
}
