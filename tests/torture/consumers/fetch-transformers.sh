#!/usr/bin/env bash
# Python `transformers` with a CPU torch in a folder of its own; nothing is installed and no root is needed.
#
# usage: fetch-transformers.sh DIR      then: DIR/python SCRIPT ARGUMENTS…
# Needs Debian 12 (torch 1.13 for its Python 3.11 comes as .deb files, unpacked beside) and pip. About 200 MB to
# download, 0.9 GB on disk, one to two minutes; a second run is instant.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# = 1 ] || { sed -n '2,6p' "${BASH_SOURCE[0]}" >&2; exit 2; }
mkdir -p "$1"
dir=$(cd "$1" && pwd)
stamp=$dir/stamp-$(cat "$here/requirements-transformers.txt" "${BASH_SOURCE[0]}" | sha256sum | cut -c1-16)
[ ! -e "$stamp" ] || exit 0
/usr/bin/python3 -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "Debian 12 with its python3 is needed" >&2; exit 1; }
apt-cache show python3-torch >/dev/null 2>&1 || { [ "$(id -u)" = 0 ] && apt-get update -qq; } || { echo "run 'apt-get update' first" >&2; exit 1; }
rm -rf "$dir"/{debs,wheels,root,site}
mkdir -p "$dir"/{debs,wheels,root,site}
cd "$dir/debs"
names=$(apt-get install --print-uris -y --no-install-recommends python3-torch 2>/dev/null | sed -n "s/^'.*' \([^ _]*\)_.*/\1/p")
[ -z "$names" ] || apt-get download -q $names >apt.log 2>&1 || { cat apt.log >&2; exit 1; }
for deb in *.deb; do [ ! -e "$deb" ] || dpkg -x "$deb" "$dir/root"; done
python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.11 -d "$dir/wheels" -r "$here/requirements-transformers.txt"
for wheel in "$dir"/wheels/*.whl; do /usr/bin/python3 -m zipfile -e "$wheel" "$dir/site"; done
cat >"$dir/python" <<'P'
#!/bin/sh
d=$(cd "$(dirname "$0")" && pwd)
l=$d/root/usr/lib/$(uname -m)-linux-gnu
export LD_LIBRARY_PATH="$l:$l/blas:$l/lapack:$d/root/lib/$(uname -m)-linux-gnu:$d/root/usr/lib"
export PYTHONPATH="$d/site:$d/root/usr/lib/python3/dist-packages" PYTHONDONTWRITEBYTECODE=1
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
exec /usr/bin/python3 "$@"
P
chmod +x "$dir/python"
"$dir/python" -c 'import transformers, torch; assert float(torch.ones(2, 3).sum()) == 6; print("transformers", transformers.__version__, "torch", torch.__version__)' 2>/dev/null
rm -rf "$dir"/{debs,wheels}
touch "$stamp"
