import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;
import static java.nio.file.StandardOpenOption.APPEND;
import static java.nio.file.StandardOpenOption.CREATE;

import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONWriter;
import com.alibaba.otter.canal.connector.core.producer.MQMessageUtils;
import com.alibaba.otter.canal.instance.manager.CanalInstanceWithManager;
import com.alibaba.otter.canal.instance.manager.model.Canal;
import com.alibaba.otter.canal.instance.manager.model.CanalParameter;
import com.alibaba.otter.canal.parse.inbound.TableMeta;
import com.alibaba.otter.canal.parse.inbound.mysql.AbstractMysqlEventParser;
import com.alibaba.otter.canal.parse.inbound.mysql.tsdb.MemoryTableMeta;
import com.alibaba.otter.canal.parse.inbound.mysql.tsdb.TableMetaTSDB;
import com.alibaba.otter.canal.parse.inbound.mysql.tsdb.TableMetaTSDBFactory;
import com.alibaba.otter.canal.protocol.ClientIdentity;
import com.alibaba.otter.canal.protocol.FlatMessage;
import com.alibaba.otter.canal.protocol.Message;
import com.alibaba.otter.canal.protocol.position.EntryPosition;
import com.alibaba.otter.canal.server.embedded.CanalServerWithEmbedded;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.log4j.BasicConfigurator;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;

/**
 * Canal's own server, parser and flat messages, sent to one partition of a topic as its Kafka
 * producer does, which is not on Maven Central: a batch is acknowledged when the broker has it.
 *
 * <p>Arguments: host, port, user, password, filter, folder, number, bootstrap servers, topic.
 */
public class RunCanal {
  public static void main(String[] given) {
    try {
      run(given);
    } catch (Throwable problem) {
      problem.printStackTrace();
      System.exit(1); // threads of Canal's would go on
    }
  }

  private static void run(String[] given) throws Exception {
    BasicConfigurator.configure();
    Logger.getRootLogger().setLevel(Level.WARN);
    String filter = given[4];
    long number = Long.parseLong(given[6]);
    CanalServerWithEmbedded server = CanalServerWithEmbedded.instance();
    Canal canal = new Canal();
    canal.setId(number);
    canal.setName("live");
    canal.setCanalParameter(parameter(given, number));
    server.setCanalInstanceGenerator(name -> instance(canal, filter));
    server.start();
    server.start("live");
    ClientIdentity client = new ClientIdentity("live", (short) 1001, filter);
    server.subscribe(client);
    Properties properties = new Properties();
    properties.put("bootstrap.servers", given[7]);
    properties.put("acks", "all");
    ByteArraySerializer bytes = new ByteArraySerializer();
    ThreadPoolExecutor pool = (ThreadPoolExecutor) Executors.newFixedThreadPool(2);
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties, bytes, bytes)) {
      while (true) {
        Message message = server.getWithoutAck(client, 1000, 200L, TimeUnit.MILLISECONDS);
        if (message.getId() == -1) {
          continue;
        }
        MQMessageUtils.EntryRowData[] rows = MQMessageUtils.buildMessageData(message, pool);
        for (FlatMessage flat : MQMessageUtils.messageConverter(rows, message.getId())) {
          byte[] value = JSON.toJSONBytes(flat, JSONWriter.Feature.WriteNulls);
          producer.send(new ProducerRecord<>(given[8], 0, null, value)).get();
        }
        server.ack(client, message.getId());
      }
    }
  }

  private static CanalInstanceWithManager instance(Canal canal, String filter) {
    CanalInstanceWithManager made = new CanalInstanceWithManager(canal, filter);
    Path file = Path.of(canal.getCanalParameter().getDataDir(), "tables.jsonl");
    ((AbstractMysqlEventParser) made.getEventParser())
        .setTableMetaTSDBFactory(
            new TableMetaTSDBFactory() {
              @Override
              public TableMetaTSDB build(String name, String xml) {
                return new Definitions(file);
              }

              @Override
              public void destory(String name) {}
            });
    return made;
  }

  private static CanalParameter parameter(String[] given, long number) {
    CanalParameter parameter = new CanalParameter();
    parameter.setSourcingType(CanalParameter.SourcingType.MYSQL);
    parameter.setIndexMode(CanalParameter.IndexMode.MEMORY_META_FAILBACK);
    parameter.setMetaMode(CanalParameter.MetaMode.LOCAL_FILE);
    parameter.setStorageMode(CanalParameter.StorageMode.MEMORY);
    parameter.setMetaFileFlushPeriod(500);
    parameter.setHaMode(CanalParameter.HAMode.HEARTBEAT);
    parameter.setDataDir(given[5]);
    parameter.setDbAddresses(
        List.of(new InetSocketAddress(given[0], Integer.parseInt(given[1]))));
    parameter.setDbUsername(given[2]);
    parameter.setDbPassword(given[3]);
    parameter.setSlaveId(number);
    parameter.setConnectionCharset("UTF-8");
    parameter.setDefaultConnectionTimeoutInSeconds(30);
    parameter.setReceiveBufferSize(16 * 1024);
    parameter.setSendBufferSize(16 * 1024);
    parameter.setDetectingEnable(false);
    parameter.setTsdbEnable(true);
    parameter.setTsdbJdbcUrl(""); // of H2, which is not used; null ends the start
    parameter.setTsdbJdbcUserName("");
    parameter.setTsdbJdbcPassword("");
    return parameter;
  }

  /**
   * The tables' definitions at each place of the log, by Canal's own parser of statements. Its
   * deployer keeps the statements in H2, by files that are not on Maven Central; here they are
   * lines of a file: the binlog's file, the place in it, the database, the statement.
   */
  private static final class Definitions implements TableMetaTSDB {
    private final Path file;
    private MemoryTableMeta now = new MemoryTableMeta();

    Definitions(Path file) {
      this.file = file;
    }

    @Override
    public boolean init(String name) {
      return true;
    }

    @Override
    public void destory() {}

    @Override
    public synchronized TableMeta find(String database, String table) {
      return now.find(database, table);
    }

    @Override
    public synchronized boolean apply(
        EntryPosition place, String database, String statement, String more) {
      now.apply(place, database, statement, more);
      String line =
          JSON.toJSONString(
              Arrays.asList(place.getJournalName(), place.getPosition(), database, statement));
      try {
        Files.writeString(file, line + "\n", CREATE, APPEND);
      } catch (IOException problem) {
        throw new UncheckedIOException(problem);
      }
      return true;
    }

    /** Canal reads on from there: the statement at that place comes again. */
    @Override
    public synchronized boolean rollback(EntryPosition place) {
      now = new MemoryTableMeta();
      StringBuilder kept = new StringBuilder();
      try {
        String all = Files.exists(file) ? Files.readString(file) : "";
        // A kill may have cut the last line short: its statement comes again.
        for (String line : all.substring(0, all.lastIndexOf('\n') + 1).lines().toList()) {
          JSONArray told = JSON.parseArray(line);
          EntryPosition its = new EntryPosition(told.getString(0), told.getLong(1));
          if (its.compareTo(place) < 0) {
            now.apply(its, told.getString(2), told.getString(3), null);
            kept.append(line).append('\n');
          }
        }
        Path next = file.resolveSibling("tables.next");
        Files.writeString(next, kept);
        Files.move(next, file, ATOMIC_MOVE);
      } catch (IOException problem) {
        throw new UncheckedIOException(problem);
      }
      return true;
    }

    @Override
    public synchronized Map<String, String> snapshot() {
      return now.snapshot();
    }
  }
}
