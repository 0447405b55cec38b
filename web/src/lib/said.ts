// What the daemon says in sentences that do not change but for their facts, in the language of the page.
// What is not known here, a driver's own words among it, stays as it is.

import type { Status } from '../api/types';
import { spokenAnywhere, type Key, type Translate } from '../i18n';

/** The facts have the names that the text uses; `detail` may be such a sentence itself. */
const SENTENCES: readonly (readonly [RegExp, Key])[] = [
  [/^the driver reported the hardware error XID (?<xid>\d+)$/, 'said.xid'],
  [/^(?<count>\d+) uncorrectable memory errors?$/, 'said.ecc'],
  [/^it was lost: (?<detail>.+)$/, 'said.wasLost'],
  [/^GPU is lost$/, 'said.lost'],
  [/^GPU requires reset$/, 'said.reset'],
  [/^the driver no longer (shows|reports) it$/, 'said.noLonger'],
  [/^not seen since the restart$/, 'said.unseen'],
  [/^its UUID cannot be read$/, 'said.noUuid'],
  [/^taken out of use on request$/, 'said.onRequest'],
  [/^job (?<id>\d+) reported: (?<what>.+)$/, 'said.reported'],
  [/^out of use: (?<detail>.+)$/, 'obstacle.drained'],
  [/^GPU (?<gpu>\d+) is gone$/, 'said.gone'],
  [/^GPU (?<gpu>\d+): (?<detail>.+)$/, 'said.ofGpu'],
  [
    /^the GPU driver has not answered for (?<time>.+); nothing new starts on GPUs until it does$/,
    'said.silent',
  ],
  [/^the GPU probe has died$/, 'said.probeDied'],
  [/^the GPU probe answers without end$/, 'said.probeEndless'],
  [
    /^the NVIDIA driver is not loaded; load it with 'modprobe nvidia' or reboot, and see 'dmesg \| grep NVRM' if that fails$/,
    'said.notLoaded',
  ],
  [
    /^the NVIDIA driver was upgraded while the old kernel module is loaded \(Driver\/library version mismatch\); reboot, or unload and load the nvidia modules$/,
    'said.mismatch',
  ],
  [
    /^no permission to use the NVIDIA driver; check the access rights of \/dev\/nvidia\*$/,
    'said.noPermission',
  ],
  [/^cannot initialise NVML: (?<what>.+); does nvidia-smi work\?$/, 'said.noNvml'],
  [
    /^(?<place>.+): (?<free>.+) free; nothing new starts until there are (?<needed>.+)$/,
    'said.space',
  ],
  [
    /^the rule gpus names (?<gpus>.+), which is not there; `berth gpus` lists the cards$/,
    'said.absent',
  ],
  [
    /^the rule gpus names (?<gpus>.+), which are not there; `berth gpus` lists the cards$/,
    'said.allAbsent',
  ],
  [/^(?<what>.+); until it is repaired, the rules stay as they were$/, 'said.unrepaired'],
];

/** Null: not one of them. */
export function known(text: string, t: Translate): string | null {
  // It was said in the language of whoever took the card out of use.
  if (spokenAnywhere('gpu.drainWhy').includes(text)) return t('gpu.drainWhy');
  for (const [sentence, key] of SENTENCES) {
    const found = sentence.exec(text);
    if (!found) continue;
    const { detail, ...facts } = found.groups ?? {};
    return t(key, detail === undefined ? facts : { ...facts, detail: said(detail, t) });
  }
  return null;
}

export const said = (text: string, t: Translate): string => known(text, t) ?? text;

/** Through what the cards are seen; empty: nobody looks, or has looked yet. */
export function driverText({ simulated, driver }: Status['probe'], t: Translate): string {
  if (simulated) return t('gpu.simulated');
  if (driver === 'none') return t('gpu.noDriverWanted');
  return driver === 'no NVIDIA driver' ? t('gpu.noDriver') : (driver ?? '');
}
