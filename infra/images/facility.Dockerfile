# What a facility has besides the pool: `hub`, a JupyterHub with KettleSpawner, and `xcache`, a cache of XRootD.
#
#   docker build -f infra/images/facility.Dockerfile --target hub --build-arg KETTLE=kettle -t kettle-hub infra/images
#   docker build -f infra/images/facility.Dockerfile --target xcache -t kettle-xcache infra/images
#
# Their releases are the site's to choose: HUB names what pip installs, and packages are those of the base.
ARG KETTLE=kettle
ARG BASE=debian:13-slim

# hadolint ignore=DL3006
FROM ${KETTLE} AS hub

ARG HUB="jupyterhub>=5 oauthenticator>=17"
USER 0:0
# What installs is beside what is installed, and goes.  ${HUB} is words.
# hadolint ignore=DL3008,DL3013,DL3016,SC2086
RUN apt-get update && apt-get install --yes --no-install-recommends nodejs npm python3-venv \
    && npm install --global --no-audit --no-fund configurable-http-proxy@4 \
    && python3 -m venv /opt/build \
    && /opt/build/bin/pip --no-cache-dir --python /opt/kettle/bin/python install ${HUB} \
    && apt-get purge --yes --auto-remove npm python3-venv && rm -rf /opt/build /root/.npm /var/lib/apt/lists/* \
    && mkdir -m 0700 /srv/hub && chown 9618:9618 /srv/hub
COPY jupyterhub_config.py /etc/jupyterhub/jupyterhub_config.py
USER 9618:9618
WORKDIR /srv/hub
LABEL org.opencontainers.image.title="kettle-hub" \
      org.opencontainers.image.description="A JupyterHub whose servers are jobs of a Kettle pool"
HEALTHCHECK NONE
ENTRYPOINT ["jupyterhub", "--config", "/etc/jupyterhub/jupyterhub_config.py"]


FROM ${BASE} AS xcache

# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends xrootd-server xrootd-server-plugins \
    && rm -rf /var/lib/apt/lists/* \
    && mkdir -m 0700 /var/spool/xcache && chown 9618:9618 /var/spool/xcache
USER 9618:9618
LABEL org.opencontainers.image.title="kettle-xcache" \
      org.opencontainers.image.description="A cache of XRootD for the machines of a site"
HEALTHCHECK NONE
ENTRYPOINT ["xrootd", "-c", "/etc/xrootd/xcache.cfg"]
