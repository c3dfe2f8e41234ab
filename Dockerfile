# The service as an image: a wheel is built in one stage and installed, with tested versions, in another.
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src ./src
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /wheels

FROM python:3.11-slim
COPY constraints.txt /tmp/constraints.txt
COPY --from=build /wheels /wheels
# torch first and pinned. Where packages come from is pip's own setting (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL as build arguments):
# name there whatever has a CPU build of torch, or gigabytes for graphics cards come along
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
RUN pip install --no-cache-dir --constraint /tmp/constraints.txt torch \
    && pip install --no-cache-dir --constraint /tmp/constraints.txt "$(echo /wheels/*.whl)[serve]" \
    && rm -rf /wheels /tmp/constraints.txt \
    && useradd --create-home --uid 10001 graphveil && install -d -o graphveil -m 700 /var/lib/graphveil
USER graphveil
ENV GRAPHVEIL_FOLDER=/var/lib/graphveil OMP_NUM_THREADS=1 NUMBA_CACHE_DIR=/tmp/numba
VOLUME /var/lib/graphveil
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]
CMD ["graphveil", "serve", "--host", "0.0.0.0", "--port", "8000"]
