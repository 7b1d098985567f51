# The service itself, with its chat in the browser: docker build -t botservice . && docker run -p 8000:8000 -e ADMIN_TOKEN=… -v botservice:/data botservice
FROM python:3.11 AS build
WORKDIR /build
RUN python -m venv /venv
COPY requirements.txt ./
RUN /venv/bin/pip install --no-cache-dir --require-hashes --requirement requirements.txt

FROM python:3.11-slim
COPY --from=build /venv /venv
WORKDIR /bot
COPY botservice botservice
COPY transports transports
RUN useradd --create-home --uid 1000 bot && mkdir /data && chown bot /data
USER 1000
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 HOST=0.0.0.0 PORT=8000 DATABASE_URL=sqlite:////data/botservice.db
VOLUME /data
EXPOSE 8000
HEALTHCHECK --start-period=30s CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/healthz', timeout=5)"]
CMD ["python", "-m", "botservice", "serve"]
