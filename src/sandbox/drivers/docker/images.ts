import type Docker from 'dockerode'
import { newId } from '../../../base/ids.ts'
import { thisMark } from '../../../base/process.ts'
import { SharedCopy } from '../../shared-copy.ts'
import { engineError, statusOf } from './engine.ts'
import { forkImages, snapshotImages } from './owner.ts'

/** Keeps the files of a container as an image. The container is paused meanwhile. */
export async function commitImage(
  docker: Docker,
  container: Docker.Container,
  kind: 'snapshot' | 'fork',
): Promise<SharedCopy> {
  const repo = kind === 'fork' ? forkImages : snapshotImages
  const tag = `${thisMark()}-${newId()}`
  try {
    const { Id } = (await container.commit({ repo, tag })) as { readonly Id: string }
    // Podman leaves the beginning out, and then takes an image that is gone for one with a wrong name.
    return new SharedCopy(Id.replace(/^(?!sha256:)/, 'sha256:'), async () => {
      await docker
        .getImage(`${repo}:${tag}`)
        .remove({ force: true, noprune: true })
        .catch(error => {
          if (statusOf(error) !== 404) throw engineError(error, 'removing the image of a fork')
        })
    })
  } catch (error) {
    throw engineError(error, 'keeping the files of the container')
  }
}

/** Brings an image that is not there. */
export async function pullImage(docker: Docker, image: string): Promise<void> {
  const progress = await docker.pull(image)
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(progress, error => (error ? reject(error) : resolve()))
  })
}
