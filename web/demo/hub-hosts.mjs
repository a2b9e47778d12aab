/**
 * Where models by name come from, as sources of a Content-Security-Policy: the Hugging Face Hub, and its servers of large files, to which it redirects.
 * The page, its policy and the tests take them from here. Servers of spaces, which anyone can run, have other domains.
 */
export const HUB_HOSTS = [
  'https://huggingface.co',
  'https://cdn-lfs.huggingface.co',
  'https://*.hf.co',
];
