# docker build --target slim -t fabula .        the command with videos, Anthropic and the review application
# docker build --target full -t fabula:full .   with every extra: torch, detectors, encoders, Ray (several GB)
# docker run --rm -v "$PWD:/data" -e OPENAI_API_KEY fabula build stories stories.jsonl --model openai:gpt-4.1-mini --out runs/mine
FROM python:3.11-slim AS wheel
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /wheels .

FROM python:3.11-slim AS base
RUN useradd --create-home --uid 1000 fabula
COPY --from=wheel /wheels /wheels
WORKDIR /data
ENV PYTHONUNBUFFERED=1

FROM base AS full
RUN apt-get update && apt-get install -y --no-install-recommends libgl1 libglib2.0-0 && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[all]"
USER fabula
ENTRYPOINT ["fabula"]
CMD ["--help"]

FROM base AS slim
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[anthropic,video,review]"
USER fabula
ENTRYPOINT ["fabula"]
CMD ["--help"]
